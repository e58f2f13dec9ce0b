"""Visual tokens of photographs through a backbone, with the boxes of the grid's cells."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smart_caption_ros.captioning.vision import grid_boxes
from training.configs.schema import PhaseConfig
from training.data.augmentation import image_generators, random_view
from training.data.caption_dataset import CaptionDataset
from training.data.grid_features import GridFeatures, grid_features
from training.data.visual_batches import VisualBatch
from training.models.captioner import Visual
from training.vision.backbone import Backbone

_AT_A_TIME = 50
"""Photographs that the backbone computes at a time without gradients."""


class Photographs:
    """Photographs through a backbone: cached grid features, or random views.

    A :class:`training.data.visual_batches.VisualInputs`. Features are cached in phases that neither train the backbone
    nor crop. Image sizes are unknown, because data sets return photographs resized to one size.
    """

    def __init__(
        self,
        dataset: CaptionDataset,
        splits: dict[str, list[str]],
        backbone: Backbone,
        facts: dict[str, Any],
        cache: Path,
    ) -> None:
        """
        Args:
            dataset: of the photographs.
            splits: image ids of ``train`` and ``dev``.
            backbone: makes the tokens.
            facts: origin of the backbone.
            cache: folder for grid features, shared between runs.

        Raises:
            DataError: photographs are missing.
        """
        for images in splits.values():
            dataset.check_photographs(images)
        self._backbone = backbone
        self.facts = facts
        self._dataset, self._splits, self._cache = dataset, splits, cache
        self._features: dict[str, GridFeatures] = {}
        self._phase: PhaseConfig | None = None
        self._flips = np.zeros(len(splits["train"]), bool)
        self._boxes = torch.from_numpy(grid_boxes(*backbone.grid))

    @property
    def token_width(self) -> int:
        return self._backbone.token_width

    @property
    def backbone(self) -> Backbone:
        return self._backbone

    def begin_phase(self, phase: PhaseConfig) -> None:
        self._phase = phase
        for layer in self._backbone.early_layers:
            layer.requires_grad_(not phase.backbone_coarse_only)
        self._features = {}
        if not phase.trains_backbone:
            self._features = {
                split: grid_features(self._cache, self._dataset, images, self.backbone, flip=split == "train")
                for split, images in self._splits.items()
                if split != "train" or phase.crop == 1
            }

    def begin_epoch(self, random: np.random.Generator) -> None:
        assert self._phase is not None
        count = len(self._splits["train"])
        self._flips = random.random(count) < 0.5 if self._phase.flip else np.zeros(count, bool)

    def training_batch(self, images: np.ndarray, random: np.random.Generator) -> VisualBatch:
        assert self._phase is not None
        flips = self._flips[images]
        if "train" in self._features:
            return self._batch(self._features["train"].read(images, flips.astype(int)))
        names = [self._splits["train"][index] for index in images]
        crop = self._phase.crop
        frames = zip(self._dataset.read_images(names), flips, image_generators(random, images), strict=True)
        views = [random_view(frame, bool(flip), crop, generator)[0] for frame, flip, generator in frames]
        return self._batch(np.stack(views))

    def dev_batch(self, images: np.ndarray) -> VisualBatch:
        if "dev" in self._features:
            return self._batch(self._features["dev"].read(images, np.zeros(len(images), int)))
        return self._batch(self._dataset.read_images([self._splits["dev"][index] for index in images]))

    def _batch(self, values: np.ndarray) -> VisualBatch:
        return VisualBatch(torch.from_numpy(values), boxes_xyxy=self._boxes.expand(len(values), -1, -1))

    def visual(self, batch: VisualBatch) -> Visual:
        tokens = batch.values
        if tokens.dtype == torch.uint8:
            assert self._phase is not None
            with torch.set_grad_enabled(self._phase.trains_backbone and torch.is_grad_enabled()):
                # Without gradients no layer's output is kept: a part of the batch at a time needs less memory.
                parts = [tokens] if torch.is_grad_enabled() else tokens.split(_AT_A_TIME)
                tokens = torch.cat([self.backbone(part) for part in parts])
        return Visual(tokens, batch.mask, batch.boxes_xyxy, batch.image_size)


def visual_of_images(backbone: Backbone, images_bgr: Tensor) -> Visual:
    """Make the captioner's input of images.

    Args:
        backbone: makes the tokens.
        images_bgr: (B, 224, 224, 3) uint8 BGR.
    """
    boxes = torch.from_numpy(grid_boxes(*backbone.grid)).to(images_bgr.device)
    return Visual(backbone(images_bgr), boxes_xyxy=boxes.expand(len(images_bgr), -1, -1))
