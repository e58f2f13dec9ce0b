"""Where a captioner's visual tokens come from while it is trained: the trainer knows no more of it than this.

A batch is made in two steps, so that the first can run ahead of the training step that it is for: on the host it is
read (photographs, or tokens that were computed before), then it becomes tokens (through the backbone, if it learns).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from training.configs.schema import ExperimentConfig, FeaturesConfig, PhaseConfig
from training.data.augmentation import random_view
from training.data.datasets import CaptionDataset
from training.data.feature_formats import check_images, open_features
from training.data.feature_store import FeatureStore
from training.data.grid_features import GridFeatures, grid_features
from training.data.region_features import RegionFeatures, Regions
from training.vision import released_weights as backbones
from training.vision.backbone import Backbone
from training.vision.detection_classes import DETECTION_CLASSES
from training.vision.side_by_side import SideBySide
from training.vision.trained_detector import TrainedDetector, with_classes


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
    def backbone(self) -> Backbone | None:
        """What makes the tokens and is part of the model; None where they were computed before."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """What makes the tokens, plain facts for the record of the model."""
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
            random: of this batch alone. What is drawn for an image does not depend on the others that are asked for.

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
    """Photographs through a backbone: cached grid features while it is frozen, random views while it learns, or where
    the phase asks for crops."""

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
            splits: images of ``train`` and ``dev``.
            facts: where the backbone is from.
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
            return VisualBatch(torch.from_numpy(self._features["train"].read(images, flips.astype(int))))
        names = [self._splits["train"][index] for index in images]
        crop = self._phase.crop
        frames = zip(self._dataset.read_images(names), flips, _of_images(random, images), strict=True)
        views = [random_view(frame, bool(flip), crop, draw)[0] for frame, flip, draw in frames]
        return VisualBatch(torch.from_numpy(np.stack(views)))

    def dev_batch(self, start: int, stop: int) -> VisualBatch:
        if "dev" in self._features:
            images = np.arange(start, min(stop, len(self._splits["dev"])))
            return VisualBatch(torch.from_numpy(self._features["dev"].read(images, np.zeros(len(images), int))))
        return VisualBatch(torch.from_numpy(self._dataset.read_images(self._splits["dev"][start:stop])))

    def tokens(self, batch: VisualBatch) -> Tensor:
        if batch.values.dtype != torch.uint8:
            return batch.values
        assert self._phase is not None
        with torch.set_grad_enabled(self._phase.trains_backbone and torch.is_grad_enabled()):
            tokens: Tensor = self.backbone(batch.values)
        return tokens


def _of_images(random: np.random.Generator, images: np.ndarray) -> list[np.random.Generator]:
    """A generator for each image that depends on the image and on what ``random`` was made of."""
    made_of = random.bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
    return [np.random.default_rng(np.random.SeedSequence(made_of, spawn_key=(int(image),))) for image in images]


class StoredFeatures:
    """Features that were computed before, of a backbone or detector that is no part of the model."""

    backbone = None

    def __init__(self, features: RegionFeatures, splits: dict[str, list[str]], facts: dict[str, Any]) -> None:
        """
        Args:
            splits: images of ``train`` and ``dev``.
            facts: where the features are from.

        Raises:
            DataError: images have no features.
        """
        self._features, self._splits = features, splits
        self.facts = {"features": facts}
        for split, images in splits.items():
            check_images(features, images, f"features: {split}")

    @property
    def token_width(self) -> int:
        return self._features.width

    def begin_phase(self, phase: PhaseConfig) -> None:
        pass

    def begin_epoch(self, random: np.random.Generator) -> None:
        pass

    def training_batch(self, images: np.ndarray, random: np.random.Generator) -> VisualBatch:
        return read_batch(self._features, [self._splits["train"][index] for index in images])

    def dev_batch(self, start: int, stop: int) -> VisualBatch:
        return read_batch(self._features, self._splits["dev"][start:stop])

    def tokens(self, batch: VisualBatch) -> Tensor:
        return batch.values


def read_batch(features: RegionFeatures, images: Sequence[str]) -> VisualBatch:
    """Features of images, padded to the longest with rows that the mask leaves out.

    Raises:
        DataError: an image has no features, or they are malformed.
    """
    return pad_regions([features.read(image) for image in images])


def pad_regions(regions: Sequence[Regions]) -> VisualBatch:
    """Regions of B images as tokens (B, N, width), N the most regions of an image, zeros behind fewer."""
    counts = [len(found.features) for found in regions]
    tokens = np.zeros((len(regions), max(counts), regions[0].features.shape[1]), np.float32)
    for rows, found in zip(tokens, regions, strict=True):
        rows[: len(found.features)] = found.features
    mask = np.arange(max(counts)) < np.array(counts)[:, None]
    return VisualBatch(torch.from_numpy(tokens), None if mask.all() else torch.from_numpy(mask))


def open_stored_features(config: FeaturesConfig, data: Path) -> tuple[RegionFeatures, dict[str, Any]]:
    """The features of an experiment, and where they are from.

    Raises:
        DataError: they are missing or malformed.
    """
    paths = config.paths(data)
    features = open_features(config.kind, paths, config.width, config.max_regions)
    facts: dict[str, Any] = {"kind": config.kind}
    if isinstance(features, FeatureStore):
        facts["source"] = features.source
    return features, facts


def open_visual_inputs(
    config: ExperimentConfig, data: Path, dataset: CaptionDataset, splits: dict[str, list[str]], cache: Path
) -> VisualInputs:
    """The visual side of an experiment.

    Args:
        data: folder that the experiment's paths are below.
        splits: images of ``train`` and ``dev``.
        cache: folder for grid features, shared between runs.

    Raises:
        BackboneError: the backbone is missing or malformed.
        DataError: photographs or features are missing.
    """
    if config.features:
        features, facts = open_stored_features(config.features, data)
        return StoredFeatures(features, splits, facts)
    paths = [backbones.locate(name, data / "backbones") for name in (config.backbone, *config.beside)]
    trained_on = [entry for path in paths for entry in backbones.provenance(path)]
    facts = {"backbone": " + ".join([config.backbone, *config.beside]), "backbone_trained_on": trained_on}
    grids = [backbones.load_backbone(path) for path in paths]
    if not config.beside and not config.yolox:
        return Photographs(dataset, splits, grids[0], facts, cache)
    detector = None
    if config.yolox:
        yolox = TrainedDetector.load(backbones.locate(config.yolox, data / "detectors"))
        detector = with_classes(yolox.detector, DETECTION_CLASSES)
        trained_on += yolox.record["trained_on"]
        facts["detector"] = yolox.record
    return Photographs(dataset, splits, SideBySide(grids, detector), facts, cache)
