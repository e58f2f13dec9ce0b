"""Pictures whose objects are known: what captions are scored against."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import Box, box_areas, clip_boxes
from smart_caption_ros.imaging import read_image
from smart_caption_ros.sources.source import GroundTruthObject


class Oddity(Enum):
    """What can be amiss in a data set and is left out (or mended, where it says so); the values are for people."""

    FOLDER_WITHOUT_LABELS = "folders without labels.json"
    SEQUENCE_WITHOUT_DETECTIONS = "sequences without detections"
    MALFORMED_FRAME = "frames whose record is malformed"
    REPEATED_FRAME = "frames whose number another frame has"
    FRAME_WITHOUT_IMAGE = "frames without an image"
    UNREADABLE_IMAGE = "frames whose image cannot be read"
    IMAGE_OF_ANOTHER_SIZE = "frames whose image has another size than their record says"
    MASK_OF_ANOTHER_SIZE = "frames whose mask has another size than the image"
    FRAME_WITHOUT_CAPTION = "frames without a given caption"
    CAPTION_WITHOUT_FRAME = "given captions of frames that are not there"
    IMAGE_WITHOUT_FRAME = "images that no frame stands for"
    IMAGE_WITHOUT_NUMBER = "images without a number in their name"
    REPEATED_IMAGE = "images whose number another image has"
    MISSING_MASK = "masks that are missing"
    UNUSABLE_MASK = "masks that are no greyscale PNG"
    OBJECTS_WITHOUT_METADATA = "frames with objects but no _metadata, which counts as no objects"
    UNKNOWN_CLASS = "objects of an unknown class"
    BACKGROUND = "objects that are background by their class"
    MALFORMED_OBJECT = "objects whose record is malformed"
    OBJECT_WITHOUT_FRAME = "objects of an image that is not listed"
    OBJECT_WITHOUT_PLACE = "objects with neither a box nor pixels in a mask"
    BOX_OUTSIDE = "objects whose box lies outside the image"
    BOX_CLIPPED = "boxes that reach out of the image, and were cut"


class Oddities:
    """How often each oddity was met, and where first."""

    def __init__(self) -> None:
        self._met: dict[Oddity, tuple[int, str]] = {}

    def add(self, oddity: Oddity, where: str) -> None:
        count, first = self._met.get(oddity, (0, where))
        self._met[oddity] = (count + 1, first)

    def count(self, oddity: Oddity) -> int:
        return self._met.get(oddity, (0, ""))[0]

    def copy(self) -> Oddities:
        copied = Oddities()
        copied._met = dict(self._met)
        return copied

    def __bool__(self) -> bool:
        return bool(self._met)

    def sentences(self) -> list[str]:
        """One for each oddity: "frames without an image: 3 (the first: 000000/12)"."""
        return [f"{oddity.value}: {count} (the first: {first})" for oddity, (count, first) in self._in_order()]

    def to_json(self) -> dict[str, Any]:
        return {oddity.value: {"count": count, "first": first} for oddity, (count, first) in self._in_order()}

    def _in_order(self) -> list[tuple[Oddity, tuple[int, str]]]:
        return [(oddity, self._met[oddity]) for oddity in Oddity if oddity in self._met]


@dataclass(frozen=True)
class GroundTruthFrame:
    """A picture and its objects; the pixels stay on disk until they are asked for."""

    sequence: str
    frame: str
    """Its name in the sequence, as the data set spells it."""
    index: int
    """Place in the sequence from 0; frames that were left out count."""
    image_path: Path
    width: int
    height: int
    objects: tuple[GroundTruthObject, ...]

    @property
    def name(self) -> str:
        """``<sequence>/<frame>``."""
        return f"{self.sequence}/{self.frame}"

    def read_image(self) -> NDArray[np.uint8]:
        """Read the pixels, uint8 HxWx3 BGR; raises ImageError as :func:`smart_caption_ros.imaging.read_image`."""
        return read_image(self.image_path)


class GroundTruth(ABC):
    """A data set whose objects are known, in sequences of frames that are read one at a time."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.oddities = Oddities()
        """What the latest pass left out; before the first, what opening found."""
        self._found_at_opening = self.oddities

    @property
    @abstractmethod
    def lengths(self) -> Mapping[str, int]:
        """Frames of every sequence, in order, those that will be left out included."""

    @abstractmethod
    def sequence_frames(self, sequence: str, every: int) -> Iterator[GroundTruthFrame]:
        """Frames of one sequence whose index is a multiple of ``every``, in order."""

    def frames(self, every: int = 1) -> Iterator[GroundTruthFrame]:
        """One pass over every ``every``-th frame of each sequence; what is amiss is counted in :attr:`oddities`."""
        self.oddities = self.opening_oddities()
        for sequence in self.lengths:
            yield from self.sequence_frames(sequence, every)

    def opening_oddities(self) -> Oddities:
        """What opening found amiss, to go on counting from."""
        return self._found_at_opening.copy()

    def count(self, every: int = 1) -> int:
        """Frames of a pass, at most: some may turn out to be amiss."""
        return sum(math.ceil(length / every) for length in self.lengths.values())

    def _object(
        self, class_name: str, instance_id: int, corners: Box, size: tuple[int, int], where: str
    ) -> GroundTruthObject | None:
        """An object from its box (exclusive corners), cut at the edges of the picture; None where nothing is left."""
        width, height = size
        clipped = clip_boxes(np.array(corners), width, height)
        left, top, right, bottom = box = tuple(clipped.tolist())
        if right <= left or bottom <= top:
            self.oddities.add(Oddity.BOX_OUTSIDE, where)
            return None
        if box != corners:
            self.oddities.add(Oddity.BOX_CLIPPED, where)
        share = float(box_areas(clipped)) / (width * height)
        return GroundTruthObject(class_name, instance_id, box, share)


def plain_number(name: str) -> str:
    """The name of a sequence or frame without padding: ``000003`` and ``3`` are one."""
    return str(int(name)) if name.isascii() and name.isdecimal() else name
