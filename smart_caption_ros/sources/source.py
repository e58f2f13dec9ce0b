"""What every frame source has in common."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import Box

logger = logging.getLogger(__name__)


class SourceError(Exception):
    """A source cannot be opened or read. The message is one sentence for a person."""


@dataclass(frozen=True)
class GroundTruthObject:
    """An object that is known to be in the picture."""

    class_name: str
    instance_id: int
    box_xyxy: Box
    """Pixels, inside the picture, exclusive at the right and bottom."""
    area_share: float
    """Share of the picture that the box covers, in (0, 1]."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of a source.

    Attributes:
        image_bgr: uint8 HxWx3, owned by the frame.
        name: short name of the frame: a file name, or the source's name and "#" and the index in six digits.
        index: position in the source from 0; frames that were skipped count.
        stamp_s: seconds since the epoch (bags, cameras) or since the start (videos); None for photographs.
        objects: what is known to be in the picture; None where nobody has said.
    """

    image_bgr: NDArray[np.uint8] = field(repr=False)
    name: str
    index: int
    stamp_s: float | None = None
    objects: tuple[GroundTruthObject, ...] | None = None


@dataclass(frozen=True)
class SkippedFrame:
    """A frame that could not be read, and why (one clause)."""

    name: str
    index: int
    reason: str


class FrameSource(ABC):
    """Frames one after another; iterating again starts again.

    A frame that cannot be read is logged as a warning, kept in `skipped_frames` and left out. A pass
    that yields no frame at all raises SourceError, so that a loop over a source never spins on nothing.
    """

    takes_topic = False
    """Whether `topic` means something to this source."""
    knows_objects = False
    """Whether its frames come with the objects that are known to be in them."""

    def __init__(self, spec: str, *, topic: str | None = None) -> None:
        self.spec = spec
        self.skipped_frames: list[SkippedFrame] = []
        """The frames that the latest pass left out."""

    @classmethod
    @abstractmethod
    def accepts(cls, spec: str) -> bool:
        """Whether `spec` names a source of this kind (asked in the order of the registry)."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What this is, for a log line: "folder photos (12 images)"."""

    @property
    @abstractmethod
    def known_length(self) -> int | None:
        """Number of frames in a pass, the unreadable ones included; None where it is not known."""

    @abstractmethod
    def _frames(self) -> Iterator[Frame]:
        """One pass. Raises SourceError where reading on is impossible."""

    def _frames_every(self, step: int) -> Iterator[Frame]:
        """As `_frames`, but for the frames between; a source that need not read those does better."""
        return (frame for frame in self._frames() if frame.index % step == 0)

    def address_of(self, frame: Frame | SkippedFrame) -> str:
        """Where to find the frame again, starting with the source as the caller spelled it."""
        return f"{self.spec}#{frame.index}"

    @property
    def skipped(self) -> int:
        """How many frames the latest pass left out."""
        return len(self.skipped_frames)

    def __len__(self) -> int:
        if self.known_length is None:
            raise TypeError(f"the number of frames of {self.description} is not known")
        return self.known_length

    def __bool__(self) -> bool:
        return True  # not len(self) != 0: a source without a length is still a source

    def __iter__(self) -> Iterator[Frame]:
        return self.every(1)

    def every(self, step: int) -> Iterator[Frame]:
        """One pass over the frames whose index is a multiple of `step`."""
        self.skipped_frames = []
        count = 0
        for frame in self._frames_every(step):
            yield frame
            count += 1
        if count == 0:
            why = f": {self.skipped_frames[0].reason}" if self.skipped_frames else ""
            raise SourceError(f"no frame could be read from {self.description}{why}")

    def _skip(self, name: str, index: int, error: Any) -> None:
        skipped = SkippedFrame(name, index, str(error))
        self.skipped_frames.append(skipped)
        logger.warning("skipped %s: %s", self.address_of(skipped), skipped.reason)
