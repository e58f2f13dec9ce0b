"""Where a captioner's visual tokens come from while it is trained: the trainer knows no more of it than this.

A batch is made in two steps, so that the first can run ahead of the training step that it is for: on the host it is
read (photographs, or tokens that were computed before), then it becomes tokens (through the backbone, if it learns).
"""

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from training.backbones import load_backbone
from training.config import ExperimentConfig, PhaseConfig
from training.data.augmentation import random_view
from training.data.datasets import CaptionDataset
from training.data.grid_features import load_or_extract
from training.models.mobilenet_v2 import MobileNetV2


class VisualBatch(NamedTuple):
    """A batch as it is read."""

    values: Tensor
    """Tokens (B, N, width) float32, or photographs (B, H, W, 3) uint8 BGR of which a backbone makes tokens."""
    mask: Tensor | None = None
    """(B, N) bool, True where a token is real; None when all are."""


class VisualInputs(Protocol):
    """The visual side of the training and dev splits."""

    @property
    def token_width(self) -> int:
        """Width of a visual token."""
        ...

    @property
    def backbone(self) -> MobileNetV2:
        """What makes the tokens and is part of the model."""
        ...

    def begin_phase(self, phase: PhaseConfig) -> None:
        """Get ready for the batches of a phase; the backbone has the weights that the phase starts from.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def begin_epoch(self, random: np.random.Generator) -> None:
        """Draw what is drawn once an epoch."""
        ...

    def training_batch(self, images: np.ndarray, random: np.random.Generator) -> VisualBatch:
        """
        Args:
            images: (B,) integers, which images of the training split.
            random: of this batch alone.

        Raises:
            DataError: an image cannot be read.
        """
        ...

    def dev_batch(self, start: int, stop: int) -> VisualBatch:
        """Images ``start`` to ``stop`` of the dev split, as the robot would see them; raises as above."""
        ...

    def tokens(self, batch: VisualBatch) -> Tensor:
        """(B, N, width), with a gradient to the backbone in a phase in which it learns."""
        ...


class Photographs:
    """Photographs through a backbone: cached grid features while it is frozen, random views while it learns."""

    def __init__(
        self, dataset: CaptionDataset, splits: dict[str, list[str]], backbone: MobileNetV2, cache: Path
    ) -> None:
        """
        Args:
            splits: images of ``train`` and ``dev``.
            cache: folder for grid features, shared between runs.
        """
        self._backbone = backbone
        self._dataset, self._splits, self._cache = dataset, splits, cache
        self._features: dict[str, np.ndarray] = {}
        self._phase: PhaseConfig | None = None
        self._flips = np.zeros(len(splits["train"]), bool)

    @property
    def token_width(self) -> int:
        return self._backbone.token_width

    @property
    def backbone(self) -> MobileNetV2:
        return self._backbone

    def begin_phase(self, phase: PhaseConfig) -> None:
        self._phase = phase
        self._features = {}
        if not phase.trains_backbone:
            self._features = {
                split: load_or_extract(self._cache, self._dataset, images, self.backbone, flip=split == "train")
                for split, images in self._splits.items()
            }

    def begin_epoch(self, random: np.random.Generator) -> None:
        assert self._phase is not None
        count = len(self._splits["train"])
        self._flips = random.random(count) < 0.5 if self._phase.flip else np.zeros(count, bool)

    def training_batch(self, images: np.ndarray, random: np.random.Generator) -> VisualBatch:
        assert self._phase is not None
        flips = self._flips[images]
        if not self._phase.trains_backbone:
            return _stored(self._features["train"][images, flips.astype(int)])
        frames = self._dataset.read_images([self._splits["train"][index] for index in images])
        crop = self._phase.crop
        views = [random_view(frame, bool(flip), crop, random) for frame, flip in zip(frames, flips, strict=True)]
        return VisualBatch(torch.from_numpy(np.stack(views)))

    def dev_batch(self, start: int, stop: int) -> VisualBatch:
        assert self._phase is not None
        if not self._phase.trains_backbone:
            return _stored(self._features["dev"][start:stop, 0])
        return VisualBatch(torch.from_numpy(self._dataset.read_images(self._splits["dev"][start:stop])))

    def tokens(self, batch: VisualBatch) -> Tensor:
        return self.backbone(batch.values) if batch.values.dtype == torch.uint8 else batch.values


def _stored(features: np.ndarray) -> VisualBatch:
    return VisualBatch(torch.from_numpy(features.astype(np.float32)))


def open_visual_inputs(
    config: ExperimentConfig, data: Path, dataset: CaptionDataset, splits: dict[str, list[str]], cache: Path
) -> VisualInputs:
    """The visual side of an experiment; arguments as :class:`Photographs`.

    Raises:
        BackboneError: the backbone is missing or malformed.
    """
    return Photographs(dataset, splits, load_backbone(data / "backbones" / config.backbone), cache)
