"""Convert between captions and Caption messages, of the classes of rclpy or of those that rosbags makes."""

from __future__ import annotations

import math
from typing import Any, Protocol

from smart_caption_ros import captioning
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.live import CaptionStatus, status_of

MS_PER_S = 1000.0
CAPTION_STATUSES = dict(enumerate(CaptionStatus))
"""Status by the number in a message, the constants STATUS_* of Caption.msg."""


class MessageTypes(Protocol):
    """The message classes, such as the module ``smart_caption_ros.msg``; fields that are not given have defaults."""

    BoundingBox: Any
    Caption: Any
    CaptionAlternative: Any
    CaptionTiming: Any
    CaptionWord: Any
    Coverage: Any
    DetectedObject: Any
    GroundedNoun: Any


def caption_message(
    types: MessageTypes,
    caption: captioning.Caption,
    header: Any,
    *,
    camera: str,
    min_confidence: float,
    grounding: Grounding | None = None,
    coverage_reason: tuple[int, str] = (0, ""),
) -> Any:
    """Convert a caption to a message and set its status.

    Args:
        types: the message classes.
        caption: the caption.
        header: header of the source image; copied unchanged.
        camera: name of the camera.
        min_confidence: captions below it get STATUS_LOW_CONFIDENCE.
        grounding: nouns and coverage of the caption; None where coverage is off.
        coverage_reason: why there is no coverage, a constant of Coverage and a sentence; not read where there is one.

    Returns:
        An instance of ``types.Caption``.
    """
    status, status_message = status_of(caption, min_confidence)
    timing = caption.timing
    return types.Caption(
        format_version=types.Caption.FORMAT_VERSION,
        header=header,
        image_width=caption.image_size[0],
        image_height=caption.image_size[1],
        camera=camera,
        text=caption.text,
        words=[
            types.CaptionWord(text=w.text, log_probability=float(w.log_probability), box=_box(types, w.box_xyxy))
            for w in caption.words
        ],
        score=float(caption.score),
        confidence=float(caption.confidence),
        calibrated_confidence=math.nan if caption.calibrated_confidence is None else caption.calibrated_confidence,
        alternatives=[types.CaptionAlternative(text=a.text, score=float(a.score)) for a in caption.alternatives],
        objects=[
            types.DetectedObject(
                class_name=o.class_name, class_id=int(o.class_id), score=float(o.score), box=_box(types, o.box_xyxy)
            )
            for o in caption.objects
        ],
        nouns=[_noun(types, noun) for noun in grounding.nouns] if grounding else [],
        coverage=_coverage(types, grounding, *coverage_reason),
        timing=types.CaptionTiming(
            preprocess_ms=timing.preprocess_s * MS_PER_S,
            vision_ms=timing.vision_s * MS_PER_S,
            decode_ms=timing.decode_s * MS_PER_S,
            coverage_ms=grounding.time_s * MS_PER_S if grounding else 0.0,
            total_ms=timing.total_s * MS_PER_S,
            steps=timing.steps,
        ),
        model=caption.model,
        engine=caption.engine,
        status=getattr(types.Caption, f"STATUS_{status.name}"),
        status_message=status_message,
    )


def message_without_text(types: MessageTypes, status: int, status_message: str, header: Any, *, camera: str) -> Any:
    """Build the message for an image that was not captioned; `status_message` says why."""
    return types.Caption(
        format_version=types.Caption.FORMAT_VERSION,
        header=header,
        camera=camera,
        calibrated_confidence=math.nan,
        coverage=types.Coverage(
            reason=types.Coverage.REASON_NOT_CAPTIONED, reason_message="the image was not captioned"
        ),
        status=status,
        status_message=status_message,
    )


def caption_of(message: Any) -> captioning.Caption:
    """Convert a message to a caption, for programs that receive captions and draw them."""
    timing = message.timing
    return captioning.Caption(
        text=message.text,
        words=tuple(captioning.Word(w.text, w.log_probability, _xyxy(w.box)) for w in message.words),
        score=message.score,
        confidence=message.confidence,
        calibrated_confidence=_finite(message.calibrated_confidence),
        alternatives=tuple(captioning.Alternative(a.text, a.score) for a in message.alternatives),
        objects=tuple(
            captioning.DetectedObject(o.class_name, o.class_id, o.score, _xyxy(o.box)) for o in message.objects
        ),
        timing=captioning.Timing(
            preprocess_s=timing.preprocess_ms / MS_PER_S,
            vision_s=timing.vision_ms / MS_PER_S,
            decode_s=timing.decode_ms / MS_PER_S,
            total_s=timing.total_ms / MS_PER_S,
            steps=timing.steps,
        ),
        image_size=(message.image_width, message.image_height),
        model=message.model,
        engine=message.engine,
    )


def grounding_of(message: Any) -> Grounding:
    """Convert the nouns and the coverage of a message, for programs that receive captions and draw them."""
    coverage = message.coverage
    return Grounding(
        nouns=tuple(
            GroundedNoun(
                noun.noun,
                noun.lemma,
                noun.word_index,
                noun.object_index if 0 <= noun.object_index < len(message.objects) else None,
                noun.similarity,
            )
            for noun in message.nouns
        ),
        coverage=_finite(coverage.noun_coverage) if coverage.valid else None,
        noun_support=_finite(coverage.noun_support) if coverage.valid and message.nouns else None,
        missed_classes=tuple(coverage.missed_classes),
        unsupported_nouns=tuple(coverage.unsupported_nouns),
        out_of_vocabulary_nouns=tuple(coverage.out_of_vocabulary_nouns),
        time_s=message.timing.coverage_ms / MS_PER_S,
    )


def stamp_ns(header: Any) -> int:
    """Return the stamp of a header in nanoseconds; 0 for a header without a stamp."""
    return int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)


def _noun(types: MessageTypes, noun: GroundedNoun) -> Any:
    return types.GroundedNoun(
        noun=noun.text,
        lemma=noun.lemma,
        word_index=noun.word_index,
        object_index=types.GroundedNoun.NO_OBJECT if noun.object_index is None else noun.object_index,
        similarity=noun.similarity,
    )


def _coverage(types: MessageTypes, grounding: Grounding | None, reason: int, reason_message: str) -> Any:
    if grounding is None or grounding.coverage is None:
        return types.Coverage(reason=reason, reason_message=reason_message)
    return types.Coverage(
        valid=True,
        reason=types.Coverage.REASON_NONE if grounding.nouns else types.Coverage.REASON_NO_NOUNS,
        reason_message="" if grounding.nouns else "the caption has no nouns",
        noun_coverage=grounding.coverage,
        noun_support=grounding.noun_support or 0.0,
        missed_classes=list(grounding.missed_classes),
        unsupported_nouns=list(grounding.unsupported_nouns),
        out_of_vocabulary_nouns=list(grounding.out_of_vocabulary_nouns),
    )


def _box(types: MessageTypes, xyxy: tuple[float, ...]) -> Any:
    x1, y1, x2, y2 = map(float, xyxy)
    return types.BoundingBox(x1=x1, y1=y1, x2=x2, y2=y2)


def _xyxy(box: Any) -> tuple[float, float, float, float]:
    return box.x1, box.y1, box.x2, box.y2


def _finite(value: float) -> float | None:
    """Return a number; None for NaN and infinity, which the message of a stranger may hold."""
    return value if math.isfinite(value) else None
