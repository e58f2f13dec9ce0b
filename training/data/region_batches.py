"""Batches of the regions of images, padded to the image with most regions."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch

from training.data.feature_store import FeatureStore
from training.data.regions import RegionFeatures, Regions
from training.data.visual_batches import VisualBatch
from training.errors import DataError
from training.models.captioner import Captioner


class RegionBatches(Protocol):
    """Batches of a list of images."""

    def read(self, places: np.ndarray) -> VisualBatch:
        """Read images.

        Args:
            places: (B,) integers, indices into the list.

        Raises:
            DataError: the features of an image are malformed; names the file, the id and the reason.
        """
        ...


def open_batches(features: RegionFeatures, images: Sequence[str], family: type[Captioner] | Captioner) -> RegionBatches:
    """Prepare the reading of batches of images.

    Args:
        features: of the images.
        images: image ids.
        family: of the captioner, or the captioner itself; says whether boxes are needed.

    Raises:
        DataError: an image of a store is missing or lacks what the family needs; of other formats, it is read to know.
            The features are of another width than a given captioner's visual tokens.
    """
    if isinstance(family, Captioner) and features.width != family.config.token_width:
        raise DataError(
            f"the stored features are {features.width} wide, but the visual tokens of this {type(family).__name__} are "
            f"{family.config.token_width} wide; give the features that it was trained on"
        )
    if not isinstance(features, FeatureStore):
        return ImageByImage(features, images, family)
    batches = features.select(images)
    for image, has_boxes in zip(images, batches.has_boxes, strict=True):
        check_needs(family, image, has_boxes)
    return batches


class ImageByImage:
    """Batches of a format that is read one image at a time; a :class:`RegionBatches`.

    An image that lacks what the family needs is an error when it is read.
    """

    def __init__(self, features: RegionFeatures, images: Sequence[str], family: type[Captioner] | Captioner) -> None:
        self._features, self._images, self._family = features, images, family

    def read(self, places: np.ndarray) -> VisualBatch:
        return pad_regions([self._read(self._images[place]) for place in places])

    def _read(self, image: str) -> Regions:
        found = self._features.read(image)
        check_needs(self._family, image, found.boxes_xyxy is not None)
        return found


def check_needs(family: type[Captioner] | Captioner, image: str, has_boxes: bool) -> None:
    """Check that an image has what a family needs.

    Raises:
        DataError: it lacks the boxes; says what to do.
    """
    if family.needs_boxes and not has_boxes:
        name = family.__name__ if isinstance(family, type) else type(family).__name__
        raise DataError(
            f"features of image {image} have no boxes, or boxes in pixels without image_w and image_h, and "
            f"{name} needs boxes; add them to the file (docs/data.md), or train another family"
        )


def pad_regions(regions: Sequence[Regions]) -> VisualBatch:
    """Make a batch of the regions of B images, padded with zeros to the N regions of the image with most.

    The boxes are None where any of the images has none.
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
    return VisualBatch(
        values=torch.from_numpy(tokens),
        mask=None if mask.all() else torch.from_numpy(mask),
        boxes_xyxy=None if any(found.boxes_xyxy is None for found in regions) else torch.from_numpy(boxes),
    )
