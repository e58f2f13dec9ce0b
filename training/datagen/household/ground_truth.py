"""What is visible in a rendered frame, and ACVR's files about it: a mask a frame and a ``labels.json`` a sequence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.sources.acvr import ACVR_CLASSES
from training.datagen.household.scene import Item

CLASSES = ACVR_CLASSES[1:]
"""What is labelled: ACVR's classes without its word for nothing."""

MINIMUM_PIXELS = 10
"""An item that shows less is not counted as visible."""


@dataclass(frozen=True)
class Visible:
    """What a frame shows of an item."""

    pixels: int
    left: int
    top: int
    right: int
    """Inclusive, as is ``bottom``: ACVR's convention."""
    bottom: int

    @property
    def box_area(self) -> int:
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


def find_visible(index: NDArray[np.uint16]) -> dict[int, Visible]:
    """The items of a frame.

    Args:
        index: (height, width), the item that each pixel shows, 0 for none.

    Returns:
        By item number, those with at least ``MINIMUM_PIXELS`` pixels.
    """
    rows, columns = np.nonzero(index)
    numbers = index[rows, columns]
    visible = {}
    for number in np.unique(numbers):
        mine = numbers == number
        if int(mine.sum()) >= MINIMUM_PIXELS:
            y, x = rows[mine], columns[mine]
            visible[int(number)] = Visible(int(mine.sum()), int(x.min()), int(y.min()), int(x.max()), int(y.max()))
    return visible


def labelled(items: Sequence[Item]) -> set[int]:
    """The numbers of the items that ACVR has a class for."""
    return {item.id for item in items if item.shape.name in CLASSES}


def mask(
    index: NDArray[np.uint16], visible: Mapping[int, Visible], labelled_items: set[int]
) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """The frame's mask: each pixel the number of the labelled object there, else 0; 16 bits where 8 are too few."""
    kept = np.where(np.isin(index, list(labelled_items & visible.keys())), index, 0)
    return kept.astype(np.uint8 if max(labelled_items, default=0) < 256 else np.uint16)


def labels(
    frames: Mapping[int, Mapping[int, Visible]], items: Sequence[Item], mask_names: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """The content of a sequence's ``labels.json``.

    Args:
        frames: what is visible, by frame number.
        items: the scene's, in the order of their numbers.
        mask_names: file names by frame number.
    """
    named = labelled(items)
    document: dict[str, dict[str, Any]] = {}
    for frame in sorted(frames):
        entry: dict[str, Any] = {"_metadata": {"mask_name": mask_names[frame], "mask_channel": 0}}
        for number in sorted(named & frames[frame].keys()):
            seen = frames[frame][number]
            entry[f"{number:06d}"] = {
                "class": items[number - 1].shape.name,
                "mask_id": number,
                "bounding_box": [seen.left, seen.top, seen.right, seen.bottom],
                "num_pixels": seen.pixels,
            }
        document[f"{frame:06d}"] = entry
    return document
