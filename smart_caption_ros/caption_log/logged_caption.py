"""One row of the caption log. Light: reading and searching a log needs neither NumPy nor OpenCV."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smart_caption_ros.text import shortened

COLUMNS = (
    "id", "stamp_ns", "wall_time_ns", "robot", "camera", "frame_id", "text", "score", "status", "model", "objects",
    "nouns", "coverage", "confidence", "calibrated_confidence", "image_width", "image_height", "pose_frame", "x", "y",
    "z", "qx", "qy", "qz", "qw",
)  # fmt: skip
"""Columns of a row in the database and in CSV files, in the order of :meth:`LoggedCaption.values`."""

ADDED_COLUMNS = ("confidence", "calibrated_confidence", "image_width", "image_height")
"""Columns that versions 3 and 4 of the log added; unknown in the rows of older ones."""

MAX_TEXT, MAX_NAME = 2000, 200
"""Maximum characters of a caption, and of the name of a camera, robot, frame, model, class or noun."""
MAX_OBJECTS, MAX_NOUNS = 256, 64

_NS_PER_MS = 1_000_000
_EARLIEST_NS = 946_684_800 * 10**9  # the year 2000: an earlier stamp counts from another start than 1970
_MAX_AHEAD_NS = 86_400 * 10**9
_MAX_NS = 2**63 - 1


@dataclass(frozen=True)
class LoggedObject:
    """A detected object: its class, the detector's score, and its box in pixels of the source image."""

    class_name: str
    score: float | None
    box_xyxy: tuple[float, float, float, float]


@dataclass(frozen=True)
class LoggedNoun:
    """A noun of a caption.

    Attributes:
        lemma: its dictionary form.
        supported: whether a detected object supports it; None where no objects were looked for.
        word_index: index of its first word, counted between the spaces of the text; None if unknown.
        word_count: number of its words.
        object_index: index of the object that it names in the caption's objects; None if it names none, or unknown.
    """

    lemma: str
    supported: bool | None
    word_index: int | None = None
    word_count: int = 1
    object_index: int | None = None


@dataclass(frozen=True)
class LoggedPose:
    """Where the robot was: a coordinate frame, x, y, z in metres, and the quaternion x, y, z, w."""

    frame_id: str
    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float]


@dataclass(frozen=True)
class LoggedCaption:
    """A caption as the log keeps it.

    Attributes:
        stamp_ns: stamp of the image's header; 0 for an image without one.
        wall_time_ns: when the caption was received, nanoseconds since 1970.
        robot: name of the robot or host.
        camera: name of the camera.
        frame_id: coordinate frame of the image's header.
        text: the caption.
        score: sum of the natural log probabilities of its words.
        status: "ok" or "low confidence".
        model: name of the model.
        objects: what was detected in the image.
        nouns: the nouns of the text.
        coverage: share of the detected classes that the text names (Eq. 10 of the SMArT paper); None if not measured.
        confidence: geometric mean of the probabilities of the words; None if unknown.
        calibrated_confidence: share of such captions that are true; None if unknown.
        image_size: width and height of the source image in pixels; None if unknown.
        pose: where the robot was; None if unknown.
        picture: a small JPEG of the image; None without one.
        id: number of the row, the time in milliseconds since 1970, moved to the next free one; None before it is
            written.
    """

    stamp_ns: int
    wall_time_ns: int
    robot: str
    camera: str
    text: str
    frame_id: str = ""
    score: float | None = None
    status: str = "ok"
    model: str = ""
    objects: tuple[LoggedObject, ...] = ()
    nouns: tuple[LoggedNoun, ...] = ()
    coverage: float | None = None
    confidence: float | None = None
    calibrated_confidence: float | None = None
    image_size: tuple[int, int] | None = None
    pose: LoggedPose | None = None
    picture: bytes | None = field(default=None, repr=False)
    id: int | None = None

    @property
    def time_ns(self) -> int:
        """When the image was taken, as well as the log can know.

        The stamp, unless it is no time of day (a simulation's, or one since the start of a camera): then the time at
        which the caption was received.
        """
        plausible = _EARLIEST_NS <= self.stamp_ns <= self.wall_time_ns + _MAX_AHEAD_NS
        return self.stamp_ns if plausible else self.wall_time_ns

    @property
    def time_ms(self) -> int:
        """:attr:`time_ns` in milliseconds, rounded down."""
        return self.time_ns // _NS_PER_MS

    @property
    def search_terms(self) -> tuple[str, ...]:
        """What a search finds beside the words of the text: lemmas ("person" for "people") and classes."""
        return tuple(dict.fromkeys([*(n.lemma for n in self.nouns), *(o.class_name for o in self.objects)]))

    def values(self) -> tuple[object, ...]:
        """Return the values of :data:`COLUMNS`: objects and nouns as JSON, eight times None without a pose."""
        pose: tuple[object, ...] = (None,) * 8
        if self.pose is not None:
            pose = (self.pose.frame_id, *map(float, (*self.pose.position, *self.pose.orientation)))
        return (
            self.id,
            self.stamp_ns,
            self.wall_time_ns,
            self.robot,
            self.camera,
            self.frame_id,
            self.text,
            self.score,
            self.status,
            self.model,
            _json([[item.class_name, item.score, item.box_xyxy] for item in self.objects]),
            _json([_noun_values(noun) for noun in self.nouns]),
            self.coverage,
            self.confidence,
            self.calibrated_confidence,
            *(self.image_size or (None, None)),
            *pose,
        )

    @classmethod
    def from_values(cls, values: Sequence[Any], picture: bytes | None = None) -> LoggedCaption:
        """Make a row of the values of :data:`COLUMNS`.

        Raises:
            ValueError: the objects or nouns are not what :meth:`values` returns for them.
        """
        fields = dict(zip(COLUMNS, values, strict=True))
        frame, x, y, z, qx, qy, qz, qw = (fields.pop(name) for name in COLUMNS[-8:])
        objects, nouns = _objects_from_json(fields.pop("objects")), _nouns_from_json(fields.pop("nouns"))
        if any(noun.object_index is not None and noun.object_index >= len(objects) for noun in nouns):
            raise ValueError("a noun names an object that is not in the list of objects")
        width, height = fields.pop("image_width"), fields.pop("image_height")
        return cls(
            objects=objects,
            nouns=nouns,
            image_size=(width, height) if width and height else None,
            pose=None if frame is None else LoggedPose(frame, (x, y, z), (qx, qy, qz, qw)),
            picture=picture,
            **fields,
        )

    def bounded(self) -> LoggedCaption:
        """Return the row as the log can keep it.

        Texts are on one line and have a maximum length, numbers that are not finite are None, and so is a pose with
        such a number; a message from outside must not fill the log or end the writer.
        """
        pose = self.pose
        if pose is not None and not all(map(math.isfinite, (*pose.position, *pose.orientation))):
            pose = None
        kept = [place for place, item in enumerate(self.objects) if all(map(math.isfinite, item.box_xyxy))][
            :MAX_OBJECTS
        ]
        moved = {before: after for after, before in enumerate(kept)}
        return replace(
            self,
            stamp_ns=min(max(self.stamp_ns, 0), _MAX_NS),
            wall_time_ns=min(max(self.wall_time_ns, 0), _MAX_NS),
            robot=one_line(self.robot),
            camera=one_line(self.camera),
            frame_id=one_line(self.frame_id),
            text=one_line(self.text, MAX_TEXT),
            score=_finite(self.score),
            status=one_line(self.status),
            model=one_line(self.model),
            objects=tuple(
                LoggedObject(one_line(o.class_name), _finite(o.score), o.box_xyxy)
                for o in map(self.objects.__getitem__, kept)
            ),
            nouns=tuple(
                replace(noun, lemma=one_line(noun.lemma), object_index=moved.get(noun.object_index))  # type: ignore[arg-type] # None is no key
                for noun in self.nouns[:MAX_NOUNS]
            ),
            coverage=_finite(self.coverage),
            confidence=_finite(self.confidence),
            calibrated_confidence=_finite(self.calibrated_confidence),
            image_size=self.image_size if self.image_size and all(0 < px < 2**31 for px in self.image_size) else None,
            pose=None if pose is None else replace(pose, frame_id=one_line(pose.frame_id)),
        )


def one_line(text: str, limit: int = MAX_NAME) -> str:
    """Return a text with a space for each control character and lone surrogate, of at most `limit` characters."""
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in text)
    return shortened(text, limit)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _objects_from_json(text: str) -> tuple[LoggedObject, ...]:
    try:
        return tuple(
            LoggedObject(_name(name), None if score is None else float(score), (float(a), float(b), float(c), float(d)))
            for name, score, (a, b, c, d) in json.loads(text)
        )
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a list of objects: {shortened(text, 40)}") from error


def _nouns_from_json(text: str) -> tuple[LoggedNoun, ...]:
    try:
        nouns = tuple(LoggedNoun(_name(lemma), *values) for lemma, *values in json.loads(text))
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a list of nouns: {shortened(text, 40)}") from error
    if not all(map(_is_noun, nouns)):
        raise ValueError(f"not a list of nouns: {shortened(text, 40)}")
    return nouns


def _noun_values(noun: LoggedNoun) -> list[object]:
    """Return a noun for JSON; without the numbers of version 3 where they are unknown."""
    if noun.word_index is None:
        return [noun.lemma, noun.supported]
    return [noun.lemma, noun.supported, noun.word_index, noun.word_count, noun.object_index]


def _is_noun(noun: LoggedNoun) -> bool:
    places = (noun.word_index, noun.word_count, noun.object_index)
    # A bool is an int, too.
    numbers = all(place is None or (type(place) is int and 0 <= place < 2**31) for place in places)
    return numbers and (noun.supported is None or isinstance(noun.supported, bool)) and noun.word_count is not None


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"not a name: {shortened(repr(value), 40)}")
    return value


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
