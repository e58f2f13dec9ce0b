"""Ground truth of rendered frames in ACVR's format: an instance mask per frame, a ``labels.json`` per sequence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulation.household.scene import PlacedObject
from smart_caption_ros.sources.acvr import ACVR_CLASSES

LABELLED_CLASSES = ACVR_CLASSES[1:]
"""Classes of the labelled objects: ACVR's without ``none``."""

MIN_VISIBLE_PIXELS = 10
"""Objects with fewer pixels count as invisible."""


@dataclass(frozen=True)
class VisibleExtent:
    """Visible pixels of an object in a frame and their bounding box in pixels."""

    pixels: int
    left: int
    top: int
    right: int
    """Inclusive, as is ``bottom``: ACVR's convention."""
    bottom: int

    @property
    def box_area(self) -> int:
        """Pixels."""
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


def visible_extents(instances: NDArray[np.uint16]) -> dict[int, VisibleExtent]:
    """Measure the visible objects of a frame.

    Args:
        instances: instance number of the object at each pixel, 0 for none, (H, W).

    Returns:
        Extents by instance number, for objects with at least ``MIN_VISIBLE_PIXELS`` pixels.
    """
    rows, columns = np.nonzero(instances)
    numbers = instances[rows, columns]
    extents = {}
    for number, pixels in zip(*np.unique(numbers, return_counts=True), strict=True):
        if pixels >= MIN_VISIBLE_PIXELS:
            y, x = rows[numbers == number], columns[numbers == number]
            extents[int(number)] = VisibleExtent(int(pixels), int(x.min()), int(y.min()), int(x.max()), int(y.max()))
    return extents


def labelled_ids(objects: Sequence[PlacedObject]) -> set[int]:
    """Return the instance numbers of the objects that belong to an ACVR class."""
    return {placed.id for placed in objects if placed.mesh.class_name in LABELLED_CLASSES}


def label_mask(
    instances: NDArray[np.uint16], extents: Mapping[int, VisibleExtent], labelled: set[int]
) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Keep the instance numbers of labelled, visible objects and set all other pixels to 0.

    Args:
        instances: instance number of the object at each pixel, (H, W).
        extents: the visible objects.
        labelled: instance numbers of the scene's labelled objects.

    Returns:
        (H, W), uint8 if every labelled number fits, else uint16.
    """
    kept = np.where(np.isin(instances, list(labelled & extents.keys())), instances, 0)
    return kept.astype(np.uint8 if max(labelled, default=0) < 256 else np.uint16)


def acvr_labels(
    frames: Mapping[int, Mapping[int, VisibleExtent]], objects: Sequence[PlacedObject], mask_names: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """Return the content of a sequence's ``labels.json``.

    Args:
        frames: extents of the visible objects by frame number.
        objects: the scene's, in the order of their instance numbers.
        mask_names: names of the mask files by frame number.
    """
    labelled = labelled_ids(objects)
    document: dict[str, dict[str, Any]] = {}
    for frame in sorted(frames):
        entry: dict[str, Any] = {"_metadata": {"mask_name": mask_names[frame], "mask_channel": 0}}
        for number in sorted(labelled & frames[frame].keys()):
            extent = frames[frame][number]
            entry[f"{number:06d}"] = {
                "class": objects[number - 1].mesh.class_name,
                "mask_id": number,
                "bounding_box": [extent.left, extent.top, extent.right, extent.bottom],
                "num_pixels": extent.pixels,
            }
        document[f"{frame:06d}"] = entry
    return document
