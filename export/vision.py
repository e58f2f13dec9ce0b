"""The vision graph: from a uint8 BGR frame to visual tokens and, if the backbone has a detector, objects.

A captioner that was trained on stored features takes the graph of the bundle that computed them.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from export.bundle import ExportError
from export.torch_to_onnx import BATCH, Size, TensorSpec, to_onnx
from smart_caption_ros.captioning.bundle import VISION_GRAPH, VisionBundle
from smart_caption_ros.captioning.vision import Vision, grid_boxes
from smart_caption_ros.engines import create_engine
from training.data.feature_extraction import BACKBONE_TOKENS, VISION_GRAPH_TOKENS
from training.data.visual_inputs import backbone_provenance, fingerprint
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import BackboneError
from training.models.captioner import Visual
from training.vision.backbone import Backbone
from training.vision.released_weights import open_backbone

IMAGE = "image_bgr"
TOKENS, BOXES, CLASS_SCORES = "tokens", "boxes", "class_scores"


class _Vision(nn.Module):
    """The backbone with the channel order folded into its weights."""

    def __init__(self, backbone: Backbone, detects: bool) -> None:
        super().__init__()
        self.detects = detects
        self.backbone = copy.deepcopy(backbone)
        self.backbone.fold_channel_order()

    def forward(self, image_bgr: Tensor) -> tuple[Tensor, ...]:
        tokens, found = self.backbone.features(image_bgr)
        if found is None or not self.detects:
            return (tokens,)
        return tokens, found.boxes_xyxy, found.class_scores


_attention = functional.scaled_dot_product_attention


def _fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    **options: Any,
) -> Tensor:
    """Compute ``scaled_dot_product_attention`` of (B, H, N, d_h) by one operator of ONNX Runtime, which never holds all
    scores. Attention with a mask, which some networks of transformers make while they are traced, is not replaced."""
    if attn_mask is not None:
        return _attention(query, key, value, attn_mask, scale=scale, **options)
    heads, width = query.shape[1], query.shape[3]
    inputs = [x.transpose(1, 2).flatten(2) for x in (query, key, value)]
    attributes = {"num_heads": heads, "scale": width**-0.5 if scale is None else scale}
    mixed = torch.onnx.ops.symbolic(
        "com.microsoft::MultiHeadAttention", inputs, attributes,
        dtype=query.dtype, shape=inputs[0].shape, version=1,
    )  # fmt: skip
    return mixed.unflatten(2, (heads, width)).transpose(1, 2)


def export_vision(backbone: Backbone, *, detects: bool = True, fused_attention: bool = False) -> onnx.ModelProto:
    """Export a backbone: ``image_bgr`` (B, H, W, 3) uint8 -> ``tokens`` (B, N, token width) float32.

    H, W and the N tokens are the backbone's; B is dynamic.

    If the backbone has a detector and ``detects`` is True, also ``boxes`` (B, A, 4) float32, xyxy in fractions
    of the frame, and ``class_scores`` (B, A, classes) float32, from 0 to 1.

    Args:
        backbone: any.
        detects: whether the graph has the detector.
        fused_attention: whether attention is an operator that ONNX Runtime alone has, a quarter faster on CPUs.
    """
    width, height = backbone.spec.preprocessing.size
    attention = _fused_attention if fused_attention else _attention
    with patch.object(functional, "scaled_dot_product_attention", attention):
        return to_onnx(
            _Vision(backbone, detects),
            {IMAGE: TensorSpec(torch.uint8, (Size(BATCH), height, width, 3))},
            [TOKENS, BOXES, CLASS_SCORES] if detects and backbone.class_names else [TOKENS],
        )


def attach_backbone(trained: TrainedCaptioner, data: Path) -> None:
    """Attach the named backbone whose stored tokens a captioner was trained on; do nothing for other captioners.

    Raises:
        ExportError: the backbone is missing, or has other weights than the one that made the features.
    """
    source = trained.record.get("features", {}).get("source", {})
    if trained.backbone is not None or source.get("made_by") != BACKBONE_TOKENS:
        return
    name = source["backbone"]
    try:
        backbone = open_backbone(name, data / "backbones").requires_grad_(False)
    except BackboneError as error:
        raise ExportError(f"the features of this captioner were made by a backbone that is missing: {error}") from None
    if fingerprint(backbone) != source["weights_sha256"]:
        raise ExportError(f"{name} has other weights than when it made the features of this captioner")
    trained.backbone = backbone
    trained.record["backbone_trained_on"] = backbone_provenance(name, data / "backbones")


def vision_bundle_for(trained: TrainedCaptioner, path: Path | None) -> VisionBundle | None:
    """Read the bundle whose vision graph belongs to a captioner; None for a captioner with a backbone.
    ``path``: folder of the bundle that the user names, if any.

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
            "`python -m training.evaluate --checkpoint`, or train on a store of `python -m training.features`"
        )
    if path is None:
        raise ExportError(
            f"this captioner was trained on tokens of the bundle {source['bundle']}; give it with --vision-from"
        )
    bundle = VisionBundle.load(path)
    digest, width = bundle.manifest["files"][VISION_GRAPH]["sha256"], trained.captioner.config.token_width
    if source["vision_sha256"] != digest or bundle.token_width != width:
        raise ExportError(
            f"{path}: its vision graph (sha256 {digest[:12]}, tokens {bundle.token_width} wide) did not make the "
            f"features of this captioner (sha256 {source['vision_sha256'][:12]}, {width} wide)"
        )
    return bundle


def visual_by(bundle: VisionBundle) -> Callable[[np.ndarray], Visual]:
    """Return a function that computes a captioner's input of frames, (B, H, W, 3) uint8 BGR, with the vision graph of a
    bundle.
    """
    vision = Vision(bundle, create_engine())

    def visual(images_bgr: np.ndarray) -> Visual:
        tokens = vision.tokens(images_bgr)
        boxes = np.tile(grid_boxes(*bundle.grid, bundle.tokens_before_grid), (len(tokens), 1, 1))
        return Visual(torch.from_numpy(tokens), None, torch.from_numpy(boxes))

    return visual
