"""Data sets with known objects, against which captions are scored."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import Box, box_areas, clip_boxes
from smart_caption_ros.imaging import ImageError, read_image, read_image_size
from smart_caption_ros.sources.source import GroundTruthObject


class DatasetIssue(Enum):
    """Kinds of faulty data, which are left out unless the value says otherwise; values are shown to users."""

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


class DatasetIssues:
    """Counts the issues of a data set and keeps the first place of each kind."""

    def __init__(self) -> None:
        self._found: dict[DatasetIssue, tuple[int, str]] = {}

    def add(self, issue: DatasetIssue, where: str) -> None:
        count, first = self._found.get(issue, (0, where))
        self._found[issue] = (count + 1, first)

    def __bool__(self) -> bool:
        return bool(self._found)

    def sentences(self) -> list[str]:
        """Return a sentence for each kind: "frames without an image: 3 (the first: 000000/12)"."""
        return [f"{name}: {found['count']} (the first: {found['first']})" for name, found in self.to_json().items()]

    def to_json(self) -> dict[str, Any]:
        found = [(issue.value, *self._found[issue]) for issue in DatasetIssue if issue in self._found]
        return {name: {"count": count, "first": first} for name, count, first in found}


@dataclass(frozen=True)
class GroundTruthFrame:
    """An image and its objects; the pixels are read on request."""

    sequence: str
    frame: str
    """Name in the sequence, as the data set spells it."""
    index: int
    """Position in the sequence from 0, frames that were left out included."""
    image_path: Path
    width: int
    height: int
    objects: tuple[GroundTruthObject, ...]

    @property
    def name(self) -> str:
        return f"{self.sequence}/{self.frame}"

    def read_image(self) -> NDArray[np.uint8]:
        """Read the pixels, uint8 HxWx3 BGR; raises ImageError as :func:`smart_caption_ros.imaging.read_image`."""
        return read_image(self.image_path)


class GroundTruth(ABC):
    """A data set with known objects: sequences of frames that are read one at a time.

    Opening it raises SourceError where it has nothing to read, or a file that is malformed as a whole.
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.lengths: dict[str, int] = {}
        """Number of frames by sequence, in order, frames that will be left out included."""
        self.issues = DatasetIssues()
        """Issues of the latest pass; before the first pass, those found at opening."""
        self._found_at_opening = self.issues

    @abstractmethod
    def sequence_frames(self, sequence: str, every: int) -> Iterator[GroundTruthFrame]:
        """Yield the frames of one sequence whose index is a multiple of ``every``, in order of the index."""

    def frames(self, every: int = 1) -> Iterator[GroundTruthFrame]:
        """Yield every ``every``-th frame of each sequence; faulty data are counted in :attr:`issues`."""
        self.issues = self.opening_issues()
        for sequence in self.lengths:
            yield from self.sequence_frames(sequence, every)

    def opening_issues(self) -> DatasetIssues:
        """Return the issues found at opening, to continue counting."""
        return deepcopy(self._found_at_opening)

    def count(self, every: int = 1) -> int:
        """Return the number of frames of a pass, frames that will be left out included."""
        return sum(math.ceil(length / every) for length in self.lengths.values())

    def _image_size(self, path: Path, name: str) -> tuple[int, int] | None:
        """Read width and height of a frame's image; None, and an issue, if that is not possible."""
        try:
            return read_image_size(path)
        except ImageError:
            self.issues.add(DatasetIssue.UNREADABLE_IMAGE, name)
            return None

    def _object(
        self, class_name: str, instance_id: int, corners: Box, size: tuple[int, int], where: str
    ) -> GroundTruthObject | None:
        """Make an object with its box clipped to the image; None if nothing of the box is inside."""
        width, height = size
        clipped = clip_boxes(np.array(corners), width, height)
        left, top, right, bottom = box = tuple(clipped.tolist())
        if right <= left or bottom <= top:
            self.issues.add(DatasetIssue.BOX_OUTSIDE, where)
            return None
        if box != corners:
            self.issues.add(DatasetIssue.BOX_CLIPPED, where)
        share = float(box_areas(clipped)) / (width * height)
        return GroundTruthObject(class_name, instance_id, box, share)


def plain_number(name: str) -> str:
    """Remove the padding of a sequence's or frame's number: ``000003`` becomes ``3``."""
    return (name.lstrip("0") or "0") if name.isascii() and name.isdecimal() else name
