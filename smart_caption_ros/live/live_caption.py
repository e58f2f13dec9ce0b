"""A caption as a consumer of a feed sees it, and the events beside the captions."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning import Caption, Timing
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.viewing import encode_picture

_JPEG_START = b"\xff\xd8\xff"


class CaptionStatus(enum.Enum):
    """What came of an image; the values are the words for a person."""

    OK = "ok"
    NOTHING_FOUND = "nothing found"
    LOW_CONFIDENCE = "low confidence"
    STALE = "stale"
    ERROR = "error"


class NounState(enum.Enum):
    """Whether a detected object supports a noun of a caption."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNCHECKED = "unchecked"
    """No objects were looked for, or nouns were not matched with them."""


class LiveImage:
    """The image of a caption, decoded and encoded only when asked for.

    Both methods keep their result. Two threads that ask at once may both compute it, and get equal results.
    """

    def __init__(self, decode: Callable[[], NDArray[np.uint8]], encoded: bytes | None = None) -> None:
        """
        Args:
            decode: returns the pixels, uint8 (H, W, 3) BGR; raises ImageError.
            encoded: the image as a file's bytes, if there are any.
        """
        self._decode = decode
        self._bgr: NDArray[np.uint8] | None = None
        self._jpeg = encoded if encoded is not None and encoded.startswith(_JPEG_START) else None

    @classmethod
    def of_pixels(cls, image_bgr: NDArray[np.uint8]) -> LiveImage:
        """Hold pixels, uint8 (H, W, 3) BGR."""
        return cls(lambda: image_bgr)

    def bgr(self) -> NDArray[np.uint8]:
        """Return the pixels, uint8 (H, W, 3) BGR; do not change them.

        Raises:
            ImageError: they cannot be decoded.
        """
        if self._bgr is None:
            self._bgr = self._decode()
        return self._bgr

    def jpeg(self) -> bytes:
        """Return a JPEG file's bytes: as they were received, else encoded with the quality of `viewing`.

        Raises:
            ImageError: the pixels cannot be decoded.
            OSError: OpenCV cannot encode them.
        """
        if self._jpeg is None:
            self._jpeg = encode_picture(self.bgr(), ".jpg")
        return self._jpeg


@dataclass(frozen=True)
class Pose:
    """Where something was, in a coordinate frame.

    Attributes:
        frame_id: the coordinate frame, such as "map".
        position: x, y, z in metres.
        orientation: quaternion x, y, z, w.
    """

    frame_id: str
    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float]


@dataclass(frozen=True)
class LiveCaption:
    """What came of one image of a camera.

    Attributes:
        camera: name of the camera, unique within the feed.
        source: full name of the topic, or the source as the user named it.
        caption: the caption; without text, words and objects where the image was not captioned.
        status: what came of the image; look at it before using the text.
        status_message: one sentence about a status other than OK, else empty.
        received_s: when the caption was received, seconds since the epoch.
        received_monotonic_s: the same by :func:`time.monotonic`.
        stamp_ns: of the image's header in nanoseconds, or since the start of a video; None for one without a stamp.
        frame_id: coordinate frame of the image's header; empty without ROS.
        name: name of the image where it has one: a file name, or the source's name and a number.
        grounding: the nouns of the caption, their objects, and coverage; None where nouns were not matched.
        looked_for_objects: whether the objects of the image are known; there may be none.
        coverage_reason: one sentence that says why something of the coverage was not measured, else empty.
        age_s: time from the stamp of the image, or from reading it, until its caption was complete, by the clock of the
            captioner; None where the image has no stamp.
        dropped: images that newer ones replaced since the caption before it.
        image: the image, if the feed was asked for images and got this one.
        pose: where the robot was at the stamp, if the feed knows.
    """

    camera: str
    source: str
    caption: Caption
    status: CaptionStatus = CaptionStatus.OK
    status_message: str = ""
    received_s: float = field(default_factory=time.time)
    received_monotonic_s: float = field(default_factory=time.monotonic)
    stamp_ns: int | None = None
    frame_id: str = ""
    name: str = ""
    grounding: Grounding | None = None
    looked_for_objects: bool = False
    coverage_reason: str = ""
    age_s: float | None = None
    dropped: int = 0
    image: LiveImage | None = field(default=None, repr=False, compare=False)
    pose: Pose | None = None

    def state_of(self, noun: GroundedNoun) -> NounState:
        """Return whether an object supports a noun of :attr:`grounding`."""
        if not self.looked_for_objects:
            return NounState.UNCHECKED
        return NounState.UNSUPPORTED if noun.object_index is None else NounState.SUPPORTED


class EventKind(enum.Enum):
    """What a :class:`FeedEvent` is about."""

    APPEARED = "appeared"
    """A camera has a publisher now, for the first time or again."""
    GONE = "gone"
    """A camera has no publisher any more, or its source has ended."""
    DIAGNOSTICS = "diagnostics"
    """The health of a camera changed to another level."""
    ERROR = "error"
    """Something could not be read."""
    ENDED = "ended"
    """The feed gives nothing more; its last item."""


@dataclass(frozen=True)
class FeedEvent:
    """Something beside the captions that a person wants to know.

    Attributes:
        kind: what it is about.
        text: one sentence.
        camera: name of the camera; None where it is about no camera or several.
        received_s: when it happened, seconds since the epoch.
        received_monotonic_s: the same by :func:`time.monotonic`.
    """

    kind: EventKind
    text: str
    camera: str | None = None
    received_s: float = field(default_factory=time.time)
    received_monotonic_s: float = field(default_factory=time.monotonic)


def status_of(caption: Caption, min_confidence: float) -> tuple[CaptionStatus, str]:
    """Return the status of a caption that the captioner gave, and a sentence about a status other than OK."""
    if not caption.text:
        return CaptionStatus.NOTHING_FOUND, "the model found nothing to say about this image"
    if not caption.shows_detail:
        return CaptionStatus.LOW_CONFIDENCE, "the image shows next to no detail: a covered lens, a blank wall or blur"
    confidence = caption.confidence
    # NaN compares false with every number, and so would pass as a high confidence.
    if math.isnan(confidence) or confidence < min_confidence:
        return (
            CaptionStatus.LOW_CONFIDENCE,
            f"the confidence {confidence:.3f} is below min_confidence ({min_confidence:.3f})",
        )
    return CaptionStatus.OK, ""


def without_caption(image_size: tuple[int, int] = (0, 0), model: str = "", engine: str = "") -> Caption:
    """Return the caption of an image that was not captioned: without text, words and objects."""
    timing = Timing(preprocess_s=0.0, vision_s=0.0, decode_s=0.0, total_s=0.0, steps=0)
    return Caption("", (), 0.0, 0.0, (), timing, image_size, model, engine)
