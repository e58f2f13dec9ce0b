"""The caption record: a caption with its evidence, and where and when it was seen; to and from JSON.

`describe`, `watch`, `serve`, the log, bags, the demo and the nodes all use :class:`CaptionRecord`.
:mod:`smart_caption_ros.caption_messages` converts it to and from the ROS message.
"""

import enum
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning import Alternative, Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.json_text import rounded
from smart_caption_ros.text import shortened, visible
from smart_caption_ros.viewing import encode_picture

FORMAT = 3
"""Version of the JSON record, in its key `format`; incremented when a key is removed or changes its meaning."""

_JPEG_START = b"\xff\xd8\xff"
_EARLIEST_NS = 946_684_800 * 10**9  # the year 2000: earlier stamps do not count from 1970
_MAX_AHEAD_NS = 86_400 * 10**9
_NO_BOX = (math.nan,) * 4
_PLURAL = re.compile(r"[^su]s$")
"""Class names that are plurals and take no article: skis and scissors, but not glass and bus."""


class CaptionStatus(enum.Enum):
    """Result of captioning an image, in the order of the STATUS_ constants of Caption.msg; the values are shown."""

    OK = "ok"
    NOTHING_FOUND = "nothing found"
    LOW_CONFIDENCE = "low confidence"
    STALE = "stale"
    ERROR = "error"


class CoverageReason(enum.Enum):
    """Why coverage was not measured, in the order of the REASON_ constants of Coverage.msg."""

    NONE = "none"
    NOT_CAPTIONED = "not captioned"
    DISABLED = "disabled"
    FAILED = "failed"
    NO_DETECTIONS = "no detections"
    DETECTIONS_LATE = "detections late"
    NO_OBJECTS = "no objects"
    NO_NOUNS = "no nouns"


_OBJECTS_KNOWN = (CoverageReason.NONE, CoverageReason.NO_OBJECTS, CoverageReason.NO_NOUNS)
_NOUNS_UNKNOWN = (CoverageReason.NOT_CAPTIONED, CoverageReason.DISABLED, CoverageReason.FAILED)


class NounState(enum.Enum):
    """Whether a detected object supports a noun of a caption."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNCHECKED = "unchecked"
    """The objects of the image are unknown."""


@dataclass(frozen=True)
class Trust:
    """Rule by which captions are refused, and what replaces their text.

    A caption of an image without detail is always refused.

    Attributes:
        min_calibrated_confidence: captions with a lower calibrated confidence, or without one, are refused; 0 accepts
            all.
        lists_objects: whether a refused caption gets the plain list of the detected objects as its text.
    """

    min_calibrated_confidence: float = 0.0
    lists_objects: bool = False


ACCEPT_ALL = Trust()


class LazyImage:
    """The image of a caption, decoded and encoded only when asked for.

    Both methods cache their result. Two threads that call one at the same time may both compute it, with equal results.
    """

    def __init__(self, decode: Callable[[], NDArray[np.uint8]], encoded: bytes | None = None) -> None:
        """
        Args:
            decode: returns the pixels, uint8 (H, W, 3) BGR; raises ImageError.
            encoded: the bytes of an image file, if the image has one.
        """
        self._decode = decode
        self._bgr: NDArray[np.uint8] | None = None
        self._jpeg = encoded if encoded is not None and encoded.startswith(_JPEG_START) else None

    @classmethod
    def of_pixels(cls, image_bgr: NDArray[np.uint8]) -> "LazyImage":
        """Hold pixels, uint8 (H, W, 3) BGR."""
        return cls(lambda: image_bgr)

    def bgr(self) -> NDArray[np.uint8]:
        """Return the pixels, uint8 (H, W, 3) BGR, which must not be modified; raises ImageError."""
        if self._bgr is None:
            self._bgr = self._decode()
        return self._bgr

    def jpeg(self) -> bytes:
        """Return a JPEG file as bytes: the received one, else the pixels encoded. Raises ImageError or OSError."""
        if self._jpeg is None:
            self._jpeg = encode_picture(self.bgr(), ".jpg")
        return self._jpeg


@dataclass(frozen=True)
class Pose:
    """Position and orientation in a coordinate frame.

    Attributes:
        position: x, y, z in metres.
        orientation: quaternion x, y, z, w.
    """

    frame_id: str
    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float]


@dataclass(frozen=True)
class CaptionRecord:
    """The caption of one image with its evidence, and where and when the image was taken.

    Attributes:
        caption: the caption; its text, words and objects are empty if the image was not captioned.
        camera: name of the camera, unique within a feed; empty if it has none.
        source: full name of the topic, or the source as the user named it.
        robot: name of the robot or host; empty if unknown.
        name: name of the image if it has one: a file name, or the name of the source with a number.
        status: result of captioning the image; check it before using the text.
        status_message: one sentence that explains a status other than OK, else empty.
        received_s: when the caption was received, seconds since the epoch.
        received_monotonic_s: the same time by :func:`time.monotonic`; not part of the JSON.
        stamp_ns: stamp of the image's header, or time since the start of a video, nanoseconds; None without a stamp.
        frame_id: coordinate frame of the image's header; empty without ROS.
        grounding: the nouns of the caption, their objects, and coverage; None if nouns were not matched.
        coverage_reason: why coverage or a part of it was not measured.
        coverage_message: the reason in one sentence; empty if everything was measured.
        age_at_start_s: time from the stamp of the image, or from reading it, to the start of the work on it, by the
            clock of the captioner; None if the image has no stamp.
        detection_wait_s: time from the finished caption to its detections; 0 without a wait.
        dropped: number of images that newer ones replaced since the previous caption.
        image: the image, if the receiver asked for images and received this one; not part of the JSON.
    """

    caption: Caption
    camera: str = ""
    source: str = ""
    robot: str = ""
    name: str = ""
    status: CaptionStatus = CaptionStatus.OK
    status_message: str = ""
    received_s: float = field(default_factory=time.time)
    received_monotonic_s: float = field(default_factory=time.monotonic)
    stamp_ns: int | None = None
    frame_id: str = ""
    grounding: Grounding | None = None
    coverage_reason: CoverageReason = CoverageReason.DISABLED
    coverage_message: str = ""
    age_at_start_s: float | None = None
    detection_wait_s: float = 0.0
    dropped: int = 0
    pose: Pose | None = None
    image: LazyImage | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        caption: Caption,
        grounding: Grounding | None = None,
        *,
        trust: Trust = ACCEPT_ALL,
        has_detector: bool = True,
        **fields: Any,
    ) -> "CaptionRecord":
        """Make the record of a caption from the captioner; `trust` decides its status."""
        if grounding is None:
            reason, sentence = CoverageReason.DISABLED, "noun coverage is off"
        elif not has_detector:
            reason, sentence = CoverageReason.DISABLED, "no detector looks for objects"
        else:
            reason, sentence = coverage_reason_of(grounding)
        covered = {"coverage_reason": reason, "coverage_message": sentence, **fields}
        return cls(caption=caption, grounding=grounding, **covered).judged(trust)

    @classmethod
    def without_caption(
        cls,
        status: CaptionStatus,
        status_message: str,
        *,
        image_size: tuple[int, int] = (0, 0),
        model: str = "",
        engine: str = "",
        total_s: float = 0.0,
        **fields: Any,
    ) -> "CaptionRecord":
        """Make the record of an image that was not captioned.

        Args:
            status_message: why, in one sentence.
            image_size: width and height in pixels; zeros if unknown.
            total_s: time from the start of the work on the image.
        """
        timing = Timing(preprocess_s=0.0, vision_s=0.0, decode_s=0.0, total_s=total_s, steps=0)
        return cls(
            Caption("", (), 0.0, 0.0, (), timing, image_size, model, engine),
            status=status,
            status_message=status_message,
            coverage_reason=CoverageReason.NOT_CAPTIONED,
            coverage_message="the image was not captioned",
            **fields,
        )

    def judged(self, trust: Trust) -> "CaptionRecord":
        """Return the record with the status that `trust` gives to its caption.

        A refused caption gets the status LOW_CONFIDENCE and loses its text, words, alternatives and nouns; its score
        and confidences are kept, and the status message quotes its text. With `trust.lists_objects` it gets the words
        and nouns of the list of its objects, without probabilities and boxes. The record of an image without a caption
        is returned unchanged.
        """
        caption = self.caption
        if self.status is CaptionStatus.OK:
            if not caption.text:
                reason = "the model found nothing to say about this image"
                return replace(self, status=CaptionStatus.NOTHING_FOUND, status_message=reason)
            if not (refusal := _refusal(caption, trust)):
                return self
            reason = f'"{visible(caption.text)}" is refused: {refusal}'
        elif self.status is CaptionStatus.LOW_CONFIDENCE and not caption.text and trust.lists_objects:
            reason = self.status_message  # another program has refused it
        else:
            return self
        words, nouns = _object_list(caption.objects) if trust.lists_objects else ((), ())
        covered: dict[str, Any] = {}
        if self.grounding is not None:
            classes = {} if nouns or self.grounding.coverage is None else {o.class_name: None for o in caption.objects}
            covered["grounding"] = replace(
                self.grounding,
                nouns=nouns,
                coverage=None if self.grounding.coverage is None else float(bool(nouns)),
                noun_support=1.0 if nouns else None,
                missed_classes=tuple(classes),
                unsupported_nouns=(),
                out_of_vocabulary_nouns=(),
            )
            if self.coverage_reason in (CoverageReason.NONE, CoverageReason.NO_NOUNS):
                covered["coverage_reason"], covered["coverage_message"] = coverage_reason_of(covered["grounding"])
        return replace(
            self,
            caption=replace(
                caption,
                text=" ".join(words).replace(" ,", ","),
                words=tuple(Word(word, math.nan, _NO_BOX) for word in words),
                alternatives=(),
            ),
            status=CaptionStatus.LOW_CONFIDENCE,
            status_message=reason,
            **covered,
        )

    @property
    def age_s(self) -> float | None:
        """Time from the stamp of the image, or from reading it, to its complete caption, seconds; None if unknown."""
        if self.age_at_start_s is None:
            return None
        grounding_s = 0.0 if self.grounding is None else self.grounding.time_s
        age_s = self.age_at_start_s + self.caption.timing.total_s + self.detection_wait_s + grounding_s
        return age_s if math.isfinite(age_s) else None

    @property
    def time_ns(self) -> int:
        """Time at which the image was taken, as far as it is known, nanoseconds since 1970.

        This is the stamp, or the time at which the caption was received if the stamp does not count from 1970, as in a
        simulation or from a camera that counts from its start.
        """
        received_ns = round(self.received_s * 1e9)
        if self.stamp_ns is not None and _EARLIEST_NS <= self.stamp_ns <= received_ns + _MAX_AHEAD_NS:
            return self.stamp_ns
        return received_ns

    @property
    def looked_for_objects(self) -> bool:
        """Whether the image was searched for objects; none may have been found."""
        return self.coverage_reason in _OBJECTS_KNOWN

    def state_of(self, noun: GroundedNoun) -> NounState:
        """Return whether an object supports a noun of :attr:`grounding`."""
        if not self.looked_for_objects:
            return NounState.UNCHECKED
        return NounState.UNSUPPORTED if noun.object_index is None else NounState.SUPPORTED

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values, :data:`FORMAT`; :meth:`from_json` reads them.

        Scores have 4 decimals, boxes are in pixels with 1 decimal, times are in seconds and durations in milliseconds.
        Infinity and NaN are null, and so is a box with such a number.
        """
        caption, grounding, timing = self.caption, self.grounding, self.caption.timing
        return {
            "format": FORMAT,
            "camera": self.camera,
            "source": self.source,
            "robot": self.robot,
            "image": self.name,
            "stamp": None if self.stamp_ns is None else _seconds(self.stamp_ns),
            "frame_id": self.frame_id,
            "received": round(self.received_s, 6),
            "status": self.status.value,
            "status_message": self.status_message,
            "text": caption.text,
            "words": [_values(word) for word in caption.words],
            "score": rounded(caption.score),
            "confidence": rounded(caption.confidence),
            "calibrated_confidence": rounded(caption.calibrated_confidence),
            "alternatives": [_values(other) for other in caption.alternatives],
            "shows_detail": caption.shows_detail,
            "objects": [_values(item) for item in caption.objects],
            "nouns": [
                {
                    "noun": noun.text,
                    "lemma": noun.lemma,
                    "word_index": noun.word_index,
                    "object_index": noun.object_index,
                    "similarity": rounded(noun.similarity),
                }
                for noun in (grounding.nouns if grounding else ())
            ],
            "coverage": None if grounding is None else _coverage(grounding),
            "coverage_reason": self.coverage_reason.value,
            "coverage_message": self.coverage_message,
            "image_size": list(caption.image_size),
            "timing_ms": {
                "age_at_start": None if self.age_at_start_s is None else rounded(1000 * self.age_at_start_s, 2),
                "preprocess": rounded(1000 * timing.preprocess_s, 2),
                "vision": rounded(1000 * timing.vision_s, 2),
                "decode": rounded(1000 * timing.decode_s, 2),
                "detection_wait": rounded(1000 * self.detection_wait_s, 2),
                "coverage": rounded(1000 * (grounding.time_s if grounding else 0), 2),
                "total": rounded(1000 * timing.total_s, 2),
            },
            "age_ms": None if self.age_s is None else rounded(1000 * self.age_s, 2),
            "steps": int(timing.steps),
            "dropped_frames": self.dropped,
            "pose": None
            if self.pose is None
            else {
                "frame_id": self.pose.frame_id,
                "position": [rounded(value, 6) for value in self.pose.position],
                "orientation": [rounded(value, 6) for value in self.pose.orientation],
            },
            "model": caption.model,
            "engine": caption.engine,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], image: LazyImage | None = None) -> "CaptionRecord":
        """Convert from the values of :meth:`to_json`.

        Args:
            values: the JSON object; unknown keys are ignored.

        Raises:
            ValueError: the values are not a caption record of this format; one sentence.
        """
        try:
            if values.get("format") != FORMAT:
                raise ValueError(f"the caption has format {values.get('format')!r}, and this program reads {FORMAT}")
            return _from_json(values, image)
        except (LookupError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a caption record: {type(error).__name__}: {shortened(str(error), 80)}") from error


def coverage_reason_of(grounding: Grounding) -> tuple[CoverageReason, str]:
    """Return why coverage was not fully measured although the image was searched for objects, with a sentence."""
    if grounding.coverage is None:
        return CoverageReason.NO_OBJECTS, "the detector found no objects in the image"
    return (CoverageReason.NONE, "") if grounding.nouns else (CoverageReason.NO_NOUNS, "the caption has no nouns")


def _refusal(caption: Caption, trust: Trust) -> str:
    """Return why a caption is refused; empty if it is accepted."""
    minimum, calibrated = trust.min_calibrated_confidence, caption.calibrated_confidence
    if not caption.shows_detail:
        return "the image shows next to no detail: a covered lens, a blank wall or blur"
    if math.isnan(caption.confidence):
        return "its confidence is not a number"
    if minimum and calibrated is None:
        return (
            f"min_calibrated_confidence is {minimum:g}, and the bundle {caption.model} cannot say which share of its "
            "captions is true"
        )
    if calibrated is not None and calibrated < minimum:
        return f"its calibrated confidence {calibrated:.3f} is below min_calibrated_confidence ({minimum:.3f})"
    return ""


def _object_list(objects: Sequence[DetectedObject]) -> tuple[tuple[str, ...], tuple[GroundedNoun, ...]]:
    """Return the words of "a chair, a table and a person", each class once, and its nouns with their first objects."""
    first_of: dict[str, int] = {}
    for index, item in enumerate(objects):
        if item.class_name:
            first_of.setdefault(item.class_name, index)
    words: list[str] = []
    nouns: list[GroundedNoun] = []
    for place, (name, index) in enumerate(first_of.items()):
        if place:
            words.append("and" if place == len(first_of) - 1 else ",")
        if not _PLURAL.search(name):
            words.append("an" if name[:1].lower() in tuple("aeiou") else "a")
        nouns.append(GroundedNoun(name, name, len(words), index, 1.0))
        words += name.split()
    return tuple(words), tuple(nouns)


def grounding_with(
    nouns: Sequence[GroundedNoun], reason: CoverageReason, coverage: Mapping[str, Any] | None, time_s: float
) -> Grounding | None:
    """Build the grounding of a record that was received; None if nouns were not matched.

    Args:
        coverage: further fields of :class:`Grounding` by name, as far as they are known; None if it was not measured.
    """
    if reason in _NOUNS_UNKNOWN and not nouns:
        return None
    found = coverage or {}
    return Grounding(
        nouns=tuple(nouns),
        coverage=found.get("noun_coverage"),
        noun_support=found.get("noun_support"),
        missed_classes=tuple(found.get("missed_classes", ())),
        unsupported_nouns=tuple(found.get("unsupported_nouns", ())),
        out_of_vocabulary_nouns=tuple(found.get("out_of_vocabulary_nouns", ())),
        time_s=time_s,
    )


def _from_json(values: Mapping[str, Any], image: LazyImage | None) -> CaptionRecord:
    timing, pose, width_height = values["timing_ms"], values["pose"], values["image_size"]
    words, objects, calibrated = values["words"], values["objects"], values["calibrated_confidence"]
    caption = Caption(
        text=_text(values["text"]),
        words=tuple(Word(_text(w["text"]), _number(w["log_probability"]), _xyxy(w["box_xyxy"])) for w in words),
        score=_number(values["score"]),
        confidence=_number(values["confidence"]),
        calibrated_confidence=None if calibrated is None else _number(calibrated),
        alternatives=tuple(Alternative(_text(a["text"]), _number(a["score"])) for a in values["alternatives"]),
        shows_detail=bool(values["shows_detail"]),
        objects=tuple(
            DetectedObject(_text(o["class_name"]), int(o["class_id"]), _number(o["score"]), _xyxy(o["box_xyxy"]))
            for o in objects
        ),
        timing=Timing(
            preprocess_s=_number(timing["preprocess"]) / 1000,
            vision_s=_number(timing["vision"]) / 1000,
            decode_s=_number(timing["decode"]) / 1000,
            total_s=_number(timing["total"]) / 1000,
            steps=int(values["steps"]),
        ),
        image_size=(int(width_height[0]), int(width_height[1])),
        model=_text(values["model"]),
        engine=_text(values["engine"]),
    )
    nouns = [
        GroundedNoun(
            _text(noun["noun"]),
            _text(noun["lemma"]),
            _index(noun["word_index"], len(words)),
            None if noun["object_index"] is None else _index(noun["object_index"], len(objects)),
            _number(noun["similarity"]),
        )
        for noun in values["nouns"]
    ]
    reason = CoverageReason(values["coverage_reason"])
    age_ms = timing["age_at_start"]
    return CaptionRecord(
        caption=caption,
        camera=_text(values["camera"]),
        source=_text(values["source"]),
        robot=_text(values["robot"]),
        name=_text(values["image"]),
        status=CaptionStatus(values["status"]),
        status_message=_text(values["status_message"]),
        received_s=float(values["received"]),
        stamp_ns=None if values["stamp"] is None else _nanoseconds(values["stamp"]),
        frame_id=_text(values["frame_id"]),
        grounding=grounding_with(nouns, reason, values["coverage"], _number(timing["coverage"]) / 1000),
        coverage_reason=reason,
        coverage_message=_text(values["coverage_message"]),
        age_at_start_s=None if age_ms is None else age_ms / 1000,
        detection_wait_s=_number(timing["detection_wait"]) / 1000,
        dropped=int(values["dropped_frames"]),
        pose=None
        if pose is None
        else Pose(_text(pose["frame_id"]), _numbers(pose["position"], 3), _numbers(pose["orientation"], 4)),
        image=image,
    )


def _values(part: Word | Alternative | DetectedObject) -> dict[str, Any]:
    """Return the fields by name, which are the keys in JSON."""
    values = {name: rounded(value) if isinstance(value, float) else value for name, value in vars(part).items()}
    if not isinstance(part, Alternative):
        is_finite = all(map(math.isfinite, part.box_xyxy))
        values["box_xyxy"] = [rounded(value, 1) for value in part.box_xyxy] if is_finite else None
    return values


def _coverage(grounding: Grounding) -> dict[str, Any] | None:
    if (noun_coverage := rounded(grounding.coverage)) is None:
        return None
    return {
        "noun_coverage": noun_coverage,
        "noun_support": rounded(grounding.noun_support),
        "missed_classes": list(grounding.missed_classes),
        "unsupported_nouns": list(grounding.unsupported_nouns),
        "out_of_vocabulary_nouns": list(grounding.out_of_vocabulary_nouns),
    }


def _xyxy(box: Sequence[float] | None) -> tuple[float, float, float, float]:
    return _NO_BOX if box is None else _numbers(box, 4)


def _seconds(time_ns: int) -> str:
    """Format a time as seconds with 9 decimals: a float cannot hold the present time to the nanosecond."""
    seconds, nanoseconds = divmod(abs(time_ns), 10**9)
    return f"{'-' if time_ns < 0 else ''}{seconds}.{nanoseconds:09d}"


def _nanoseconds(text: str) -> int:
    seconds, _, nanoseconds = text.removeprefix("-").partition(".")
    time_ns = int(seconds) * 10**9 + int(nanoseconds)
    return -time_ns if text.startswith("-") else time_ns


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _numbers(values: Sequence[Any], count: int) -> Any:
    if len(values) != count:
        raise TypeError(f"{len(values)} numbers in place of {count}")
    return tuple(map(_number, values))


def _index(value: Any, length: int) -> int:
    if type(value) is not int or not 0 <= value < length:  # a bool is an int
        raise TypeError(f"{value!r} is not an index of a list of {length}")
    return value
