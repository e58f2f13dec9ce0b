"""The vision graph of a captioner that was trained on stored features: that of the bundle which computed them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from export.bundle import ExportError
from export.metadata import EARLIER_SHA256
from smart_caption_ros.captioning import Bundle
from smart_caption_ros.captioning.bundle import VISION_GRAPH
from smart_caption_ros.captioning.vision import Vision, grid_boxes
from smart_caption_ros.engines import create_engine
from training.data.feature_extraction import VISION_GRAPH_TOKENS
from training.engine.trained_captioner import TrainedCaptioner
from training.models.captioner import Visual


def lender_of_vision(trained: TrainedCaptioner, path: Path | None) -> Bundle | None:
    """Read the bundle whose vision graph belongs to a captioner; None for a captioner with a backbone.

    Args:
        trained: the captioner.
        path: of the bundle that was given for it, if any.

    Raises:
        ExportError: the features came from something that no bundle contains, or not from ``path``.
        BundleError: the bundle is missing or wrong.
    """
    if trained.backbone is not None:
        if path is not None:
            raise ExportError("this captioner has a backbone of its own; leave --vision-from out")
        return None
    features = trained.record["features"]
    source = features.get("source", {})
    if source.get("made_by") != VISION_GRAPH_TOKENS:
        made_by = source.get("made_by", f"a detector whose features are in {features['kind']} files")
        raise ExportError(
            f"this captioner was trained on features of {made_by}, which no bundle carries: evaluate it with "
            "`python -m training.evaluate --checkpoint`, or train on a store of `python -m training.features --bundle`"
        )
    if path is None:
        raise ExportError(
            f"this captioner was trained on tokens of the bundle {source['bundle']}; give it with --vision-from"
        )
    bundle = Bundle.load(path)
    file = bundle.manifest["files"][VISION_GRAPH]
    digest = file["sha256"]
    if (
        source["vision_sha256"] not in (digest, *file.get(EARLIER_SHA256, ()))
        or bundle.token_width != trained.captioner.config.token_width
    ):
        raise ExportError(
            f"{path}: its vision graph (sha256 {digest[:12]}, tokens {bundle.token_width} wide) did not make the "
            f"features of this captioner (sha256 {source['vision_sha256'][:12]}, "
            f"{trained.captioner.config.token_width} wide)"
        )
    return bundle


def visual_by(bundle: Bundle) -> Callable[[np.ndarray], Visual]:
    """Return a function that computes what a captioner sees of frames (B, H, W, 3) uint8 BGR, by the vision graph
    of a bundle.
    """
    vision = Vision(bundle, create_engine())

    def visual(images_bgr: np.ndarray) -> Visual:
        tokens = vision.tokens(images_bgr)
        boxes = np.tile(grid_boxes(*bundle.grid), (len(tokens), 1, 1))
        return Visual(torch.from_numpy(tokens), None, torch.from_numpy(boxes))

    return visual
