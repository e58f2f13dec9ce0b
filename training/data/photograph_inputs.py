"""Visual tokens of photographs through a backbone, with the boxes of the grid's cells.

What does not learn in a phase is computed once for a view of a photograph and kept: the tokens of a frozen backbone, or
the early features of one whose early layers are frozen. Features are computed in the step that first needs them, by the
process that needs them, so there is no pass over the photographs before training.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from smart_caption_ros.captioning.vision import grid_boxes
from training.configs.schema import PhaseConfig
from training.data.caption_dataset import CaptionDataset
from training.data.feature_cache import GridFeatures, digest_of_samples, features_of_photographs, fingerprint
from training.data.views import EpochViews
from training.models.captioner import Visual
from training.vision.backbone import Backbone, CachesEarlyLayers

_AT_A_TIME = 50
"""Photographs that a network computes at a time without gradients: no layer's output is kept, so that parts of a large
batch need less memory."""


class PhotographBatch(NamedTuple):
    """Views of B photographs as they are read on the host."""

    split: str
    frames: Tensor | None
    """(M, H, W, 3) uint8 BGR, of the backbone's size: views whose features are not kept yet, or all views in a phase
    that keeps none. None if there are none."""
    features: Tensor | None = None
    """(B, width) float16, features that are kept, undefined in the rows of ``frames``. None in a phase that keeps
    none."""
    missing: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    """(M,) images and (M,) views of ``frames``, whose features are to be kept. None if they are not."""
    rows: Tensor | None = None
    """(M,) int64, the rows of ``features`` that belong to ``frames``."""


class Photographs:
    """Photographs through a backbone; a :class:`training.data.visual_batches.VisualInputs`.

    Image sizes are unknown, because data sets return photographs resized to one size.
    """

    def __init__(
        self,
        dataset: CaptionDataset,
        splits: dict[str, list[str]],
        backbone: Backbone,
        facts: dict[str, Any],
        cache: Path,
        *,
        seed: int = 1,
    ) -> None:
        """Take the photographs of ``train`` and ``dev``.

        Args:
            splits: image ids of ``train`` and ``dev``.
            facts: origin of the backbone.
            cache: folder for features, shared between runs.

        Raises:
            DataError: photographs are missing.
        """
        for images in splits.values():
            dataset.check_photographs(images)
        self._backbone = backbone
        self.facts = facts
        self._dataset, self._splits, self._cache = dataset, splits, cache
        self._seed = seed
        self._phase: PhaseConfig | None = None
        self._views: EpochViews | None = None
        self._features: dict[str, GridFeatures] = {}
        self._boxes = torch.from_numpy(boxes_of_tokens(backbone))

    @property
    def token_width(self) -> int:
        return self._backbone.spec.token_width

    @property
    def backbone(self) -> Backbone:
        return self._backbone

    def begin_phase(self, phase: PhaseConfig, precision: str) -> None:
        self._phase, self._features = phase, {}
        self._backbone.requires_grad_(False)
        if phase.trains_backbone:
            self._backbone.trainable.requires_grad_(True)
            if not phase.backbone_coarse_only:
                return
            assert isinstance(self._backbone, CachesEarlyLayers)
            for layer in self._backbone.early_layers:
                layer.requires_grad_(False)
        self._open_features(phase, precision)

    def _open_features(self, phase: PhaseConfig, precision: str) -> None:
        """Open the features of views that may occur more than once in the phase."""
        backbone, splits = self._backbone, self._splits
        spec, width = backbone.spec, backbone.spec.tokens * backbone.spec.token_width
        if phase.trains_backbone:
            assert isinstance(backbone, CachesEarlyLayers)
            width = backbone.early_width
        facts = [fingerprint(backbone), asdict(spec.preprocessing), phase.trains_backbone, precision]
        self._features["dev"] = features_of_photographs(self._cache, self._dataset, splits["dev"], facts, width, 1)
        if phase.crop == 1:
            views = 2 if phase.flip else 1
            self._features["train"] = features_of_photographs(
                self._cache, self._dataset, splits["train"], facts, width, views
            )

    def begin_epoch(self, epoch: int) -> None:
        assert self._phase is not None
        self._views = EpochViews(len(self._splits["train"]), self._phase, self._seed, epoch)

    def training_batch(self, images: np.ndarray) -> PhotographBatch:
        assert self._views is not None
        return self._batch("train", images, self._views.mirrored[images].astype(int))

    def dev_batch(self, images: np.ndarray) -> PhotographBatch:
        return self._batch("dev", images, np.zeros(len(images), int))

    def _batch(self, split: str, images: NDArray[np.integer], views: NDArray[np.integer]) -> PhotographBatch:
        kept = self._features.get(split)
        if kept is None:
            return PhotographBatch(split, torch.from_numpy(self._read(split, images)))
        features, computed = kept.read(images, views)
        if computed.all():
            return PhotographBatch(split, None, torch.from_numpy(features))
        rows = np.flatnonzero(~computed)
        frames = torch.from_numpy(self._read(split, images[rows]))
        missing = images[rows], views[rows]
        return PhotographBatch(split, frames, torch.from_numpy(features), missing, torch.from_numpy(rows))

    def _read(self, split: str, images: NDArray[np.integer]) -> np.ndarray:
        names = [self._splits[split][image] for image in images]
        photographs = self._dataset.read_images(names, self._backbone.spec.preprocessing)
        if split == "dev":
            return photographs
        assert self._views is not None
        return self._views.cut(photographs, images)

    def pooled(self, images: np.ndarray) -> NDArray[np.float32]:
        names = [self._splits["train"][image] for image in images]
        frames = self._dataset.read_images(names, self._backbone.spec.preprocessing)
        device = next(self._backbone.parameters()).device
        with torch.no_grad():
            tokens = _in_parts(self._backbone, torch.from_numpy(frames).to(device))
        pooled: NDArray[np.float32] = tokens.float().mean(dim=1).cpu().numpy()
        return pooled

    def pooled_key(self) -> list[Any]:
        self._backbone.requires_grad_(False)  # the fingerprint is that of the weights that do not learn
        groups = self._dataset.groups(self._splits["train"])
        samples = [[digest_of_samples(self._dataset, group), group] for group in groups]
        return [fingerprint(self._backbone), asdict(self._backbone.spec.preprocessing), samples]

    def visual(self, batch: PhotographBatch) -> Visual:
        assert self._phase is not None
        learns = self._phase.trains_backbone
        if batch.features is None:
            assert batch.frames is not None
            with torch.set_grad_enabled(learns and torch.is_grad_enabled()):
                tokens = _in_parts(self.backbone, batch.frames)
        else:
            features = self._complete(batch)
            tokens = self.backbone(features) if learns else features.unflatten(1, (-1, self.token_width))
        boxes = self._boxes.to(tokens.device)
        return Visual(tokens, boxes_xyxy=boxes.expand(len(tokens), -1, -1))

    def _complete(self, batch: PhotographBatch) -> Tensor:
        """Compute the features of a batch that are not kept yet, keep them, and return all of them, (B, width) float.

        Computed features are rounded to float16 like the kept ones, so that a step is the same with either.
        """
        assert self._phase is not None
        assert batch.features is not None
        features = batch.features
        if batch.frames is not None:
            assert batch.missing is not None
            assert batch.rows is not None
            with torch.no_grad():
                network: Callable[[Tensor], Tensor] = self.backbone
                if self._phase.trains_backbone:
                    assert isinstance(self.backbone, CachesEarlyLayers)
                    network = self.backbone.early_features
                computed = _in_parts(network, batch.frames).flatten(1).half()
                features = features.clone()
                features[batch.rows] = computed.to(features.dtype)  # index_copy refuses float16 under autocast
            self._features[batch.split].write(*batch.missing, computed.cpu().numpy())
        device = features.device.type
        return features.to(torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32)


def _in_parts(network: Callable[[Tensor], Tensor], frames: Tensor) -> Tensor:
    return network(frames) if torch.is_grad_enabled() else torch.cat([*map(network, frames.split(_AT_A_TIME))])


def visual_of_images(backbone: Backbone, images_bgr: Tensor) -> Visual:
    """Make the captioner's input of images.

    Args:
        backbone: makes the tokens.
        images_bgr: (B, H, W, 3) uint8 BGR, of the backbone's size.

    Raises:
        ValueError: they have another size; their tokens would be those of other cells.
    """
    height, width = images_bgr.shape[1:3]
    if (width, height) != (size := backbone.spec.preprocessing.size):
        raise ValueError(f"frames of {width} x {height} pixels, but the backbone takes those of {size[0]} x {size[1]}")
    boxes = torch.from_numpy(boxes_of_tokens(backbone)).to(images_bgr.device)
    return Visual(backbone(images_bgr), boxes_xyxy=boxes.expand(len(images_bgr), -1, -1))


def boxes_of_tokens(backbone: Backbone) -> NDArray[np.float32]:
    """Compute the boxes of a backbone's tokens, (N, 4) float32 xyxy, fractions of what it sees of a frame."""
    spec = backbone.spec
    return grid_boxes(spec.rows, spec.columns, spec.before)
