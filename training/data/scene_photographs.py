"""Photographs inside buildings and elsewhere, to learn what kinds of scenes there are."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.data import coco_photographs, flickr8k
from training.data.coco_photographs import CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.held_out import excluded_photographs
from training.data.photographs import PhotographArchive

PROVENANCE = [
    coco_photographs.PROVENANCE,
    flickr8k.PROVENANCE,
    {"name": "NYU Depth v2 photographs (Silberman et al. 2012)", "terms": "research use"},
]
"""Name and terms of the photographs, for the manifests of models."""
_EVERY = 4
"""One in how many photographs of Flickr8k is taken: nearly all show people and dogs outdoors."""


@dataclass(frozen=True)
class ScenePhotograph:
    """A photograph, and whether it was taken inside a building."""

    inside: bool
    read: Callable[[int], NDArray[np.uint8]]
    """Reads it, (size, size, 3) uint8 BGR; called with the size in pixels. Raises DataError."""


def scene_photographs(data: Path) -> list[ScenePhotograph]:
    """List photographs of the training parts of ``coco_photographs``, ``nyu_rooms`` and ``flickr8k``.

    Photographs that no model may learn from (:mod:`training.data.held_out`) are not among them. Those of nyu_rooms are
    inside; those of Flickr8k count as elsewhere.

    Args:
        data: folder of the data sets.

    Raises:
        DataError: a file is missing or malformed.
    """
    coco = CocoPhotographs(data / "coco_photographs")
    excluded = excluded_photographs("coco_photographs")
    found = [
        ScenePhotograph(photograph.indoor, _reader(coco.read_images, image))
        for image, photograph in coco.photographs.items()
        if photograph.part == "train" and image not in excluded
    ]
    rooms = PhotographArchive(data / "nyu_rooms" / "images.zip")
    excluded = excluded_photographs("nyu_rooms")
    found += [ScenePhotograph(True, _reader(rooms.read_all, name)) for name in rooms.names if name not in excluded]
    people = Flickr8k(data / "flickr8k")
    found += [ScenePhotograph(False, _reader(people.read_images, image)) for image in people.split("train")[::_EVERY]]
    return found


def _reader(read_all: Callable[[list[str], int], NDArray[np.uint8]], name: str) -> Callable[[int], NDArray[np.uint8]]:
    """Return what reads one photograph of those that ``read_all`` reads."""
    return lambda size: read_all([name], size)[0]
