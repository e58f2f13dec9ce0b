"""The interface of all frame sources, and their frames."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.imaging import ImageError, read_image

logger = logging.getLogger(__name__)


class SourceError(ExpectedError):
    """A source or a file of a data set cannot be opened or read."""


@dataclass(frozen=True)
class GroundTruthObject:
    """An object that is known to be in an image."""

    class_name: str
    instance_id: int
    box_xyxy: Box
    """Pixels, inside the image."""
    area_share: float
    """Share of the image that the box covers, in (0, 1]."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One image of a source.

    Attributes:
        image_bgr: uint8 HxWx3, owned by the frame.
        name: short name of the frame: a file name, or the source's name and "#" and the index in six digits.
        index: position in the source from 0, skipped frames included.
        stamp_ns: nanoseconds since the epoch (bags, cameras) or since the start (videos); None for photographs.
        objects: ground truth; None if the source has none.
    """

    image_bgr: NDArray[np.uint8] = field(repr=False)
    name: str
    index: int
    stamp_ns: int | None = None
    objects: tuple[GroundTruthObject, ...] | None = None


@dataclass(frozen=True)
class SkippedFrame:
    """A frame that could not be read, and the reason (one clause)."""

    name: str
    index: int
    reason: str


class FrameSource(ABC):
    """An iterable of frames; each iteration starts at the first frame.

    A frame that cannot be read is logged as a warning, added to `skipped_frames` and left out. A pass that yields no
    frame raises SourceError, so that a caller that repeats passes does not loop forever.
    """

    is_live = False
    """Whether frames come at their own time and are lost if they are not read then."""
    knows_objects = False
    """Whether frames have :attr:`Frame.objects`."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.known_length: int | None = None
        """Number of frames in a pass, unreadable ones included; None if unknown."""
        self.skipped_frames: list[SkippedFrame] = []
        self.notes: list[str] = []
        """What else was left out of the latest pass, which is also logged."""
        self._taken = 0

    @classmethod
    @abstractmethod
    def accepts(cls, spec: str) -> bool:
        """Whether `spec` names a source of this kind; called in the order of the registry."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Kind, name and size for a log line: "folder photos (12 images)"."""

    @abstractmethod
    def _frames(self, step: int) -> Iterator[Frame]:
        """Yield the frames of one pass; frames whose index is not a multiple of `step` may be left out."""

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        """Return the address of a frame: the spec as the caller spelled it, and the frame."""
        return f"{self.spec}#{frame.index}"

    def __iter__(self) -> Iterator[Frame]:
        return self.every(1)

    def every(self, step: int) -> Iterator[Frame]:
        """Yield, in one pass, the frames whose index is a multiple of `step`."""
        self.skipped_frames, self.notes, self._taken = [], [], 0
        count = 0
        for frame in self._frames(step):
            if frame.index % step == 0:
                yield frame
                count += 1
        if count == 0:
            why = f": {self.skipped_frames[0].reason}" if self.skipped_frames else ""
            raise SourceError(f"no frame could be read from {self.description}{why}")

    def newly_skipped(self) -> list[SkippedFrame]:
        """Return the frames that were skipped since the last call in this pass."""
        new = self.skipped_frames[self._taken :]
        self._taken += len(new)
        return new

    def _read(
        self, path: Path, name: str, index: int, objects: tuple[GroundTruthObject, ...] | None = None
    ) -> Iterator[Frame]:
        try:
            image_bgr = read_image(path)
        except ImageError as error:
            self._skip(name, index, error)
        else:
            yield Frame(image_bgr, name, index, objects=objects)

    def _skip(self, name: str, index: int, error: Any) -> None:
        skipped = SkippedFrame(name, index, str(error))
        self.skipped_frames.append(skipped)
        logger.warning("skipped %s: %s", self.address_of(skipped), skipped.reason)
