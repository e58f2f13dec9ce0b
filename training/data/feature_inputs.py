"""Visual tokens that are read from files, with boxes and image sizes where the files have them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training.configs.schema import FeaturesConfig, PhaseConfig
from training.data.feature_formats import check_images, open_features
from training.data.feature_store import FeatureStore
from training.data.regions import RegionFeatures, Regions
from training.data.visual_batches import VisualBatch
from training.errors import DataError
from training.models.captioner import Captioner, Visual


class StoredFeatures:
    """Features of a network that is not part of the model; a :class:`training.data.visual_batches.VisualInputs`."""

    backbone = None

    def __init__(
        self,
        features: RegionFeatures,
        splits: dict[str, list[str]],
        facts: dict[str, Any],
        family: type[Captioner] = Captioner,
    ) -> None:
        """
        Args:
            features: of all images of the splits.
            splits: image ids of ``train`` and ``dev``.
            facts: origin of the features.
            family: of the captioner; says whether boxes and image sizes are needed.

        Raises:
            DataError: images have no features, or an image lacks what the family needs.
        """
        self._features, self._splits, self._family = features, splits, family
        self.facts = {"features": facts}
        for split, images in splits.items():
            check_images(features, images, f"features: {split}")
            read_batch(features, images[:1], family)  # fails before training instead of hours later

    @property
    def token_width(self) -> int:
        return self._features.width

    def begin_phase(self, phase: PhaseConfig) -> None:
        pass

    def begin_epoch(self, random: np.random.Generator) -> None:
        pass

    def training_batch(self, images: np.ndarray, random: np.random.Generator) -> VisualBatch:
        return read_batch(self._features, [self._splits["train"][index] for index in images], self._family)

    def dev_batch(self, start: int, stop: int) -> VisualBatch:
        return read_batch(self._features, self._splits["dev"][start:stop], self._family)

    def visual(self, batch: VisualBatch) -> Visual:
        return Visual(*batch)


def read_batch(features: RegionFeatures, images: Sequence[str], family: type[Captioner] = Captioner) -> VisualBatch:
    """Read the features of images, padded to the image with most regions.

    Args:
        features: of the images.
        images: image ids.
        family: of the captioner; says whether boxes and image sizes are needed.

    Raises:
        DataError: an image has no features, they are malformed, or it lacks what the family needs.
    """
    regions = [features.read(image) for image in images]
    for image, found in zip(images, regions, strict=True):
        _check_needs(image, found, family)
    return pad_regions(regions)


def _check_needs(image: str, regions: Regions, family: type[Captioner]) -> None:
    if family.needs_image_size and regions.image_size is None:
        raise DataError(
            f"features of image {image} have no image size, which {family.__name__} needs; "
            "add image_w and image_h to the file (docs/data.md), or train another family"
        )
    if family.needs_boxes and regions.boxes_xyxy is None:
        raise DataError(
            f"features of image {image} have no boxes, or boxes in pixels without image_w and image_h, and "
            f"{family.__name__} needs boxes; add them to the file (docs/data.md), or train another family"
        )


def pad_regions(regions: Sequence[Regions]) -> VisualBatch:
    """Make a batch of the regions of B images, padded with zeros to the N regions of the image with most.

    The boxes are None where any of the images has none, and so are the image sizes.
    """
    counts = [len(found.features) for found in regions]
    shape = (len(regions), max(counts))
    tokens = np.zeros((*shape, regions[0].features.shape[1]), np.float32)
    boxes = np.zeros((*shape, 4), np.float32)
    for row, found in enumerate(regions):
        tokens[row, : counts[row]] = found.features
        if found.boxes_xyxy is not None:
            boxes[row, : counts[row]] = found.boxes_xyxy
    mask = np.arange(max(counts)) < np.array(counts)[:, None]
    sizes = [found.image_size for found in regions]
    return VisualBatch(
        values=torch.from_numpy(tokens),
        mask=None if mask.all() else torch.from_numpy(mask),
        boxes_xyxy=None if any(found.boxes_xyxy is None for found in regions) else torch.from_numpy(boxes),
        image_size=None if None in sizes else torch.tensor(sizes, dtype=torch.float32),
    )


def open_stored_features(config: FeaturesConfig, data: Path) -> tuple[RegionFeatures, dict[str, Any]]:
    """Open the features of an experiment.

    Args:
        config: the entry ``features`` of the experiment.
        data: folder that contains its paths.

    Returns:
        The features, and their origin as JSON values.

    Raises:
        DataError: they are missing or malformed.
    """
    features = open_features(config.kind, config.paths(data), config.width, config.max_regions)
    facts: dict[str, Any] = {"kind": config.kind}
    if isinstance(features, FeatureStore):
        facts["source"] = features.source
    return features, facts
