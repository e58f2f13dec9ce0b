"""Convert between caption records and Caption messages; the message classes may be those of rclpy or of rosbags."""

import math
from typing import Any

from smart_caption_ros.captioning import Alternative, Caption, DetectedObject, Timing, Word
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason, grounding_with

MS_PER_S = 1000.0
CAPTION_STATUSES = dict(enumerate(CaptionStatus))
"""Status by its number in a message, the STATUS_ constants of Caption.msg."""
COVERAGE_REASONS = dict(enumerate(CoverageReason))
"""Reason by its number in a message, the REASON_ constants of Coverage.msg."""


def to_message(types: Any, record: CaptionRecord, header: Any) -> Any:
    """Convert a record to a message.

    Args:
        types: namespace of the message classes, whose fields have defaults: the module ``smart_caption_ros.msg``, say.
        header: header of the source image; used unchanged, instead of the stamp and frame of the record.
    """
    caption, grounding, timing = record.caption, record.grounding, record.caption.timing
    return types.Caption(
        format_version=types.Caption.FORMAT_VERSION,
        header=header,
        image_width=caption.image_size[0],
        image_height=caption.image_size[1],
        camera=record.camera,
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
        coverage=_coverage(types, record),
        timing=types.CaptionTiming(
            age_at_start_ms=(record.age_at_start_s or 0.0) * MS_PER_S,
            preprocess_ms=timing.preprocess_s * MS_PER_S,
            vision_ms=timing.vision_s * MS_PER_S,
            decode_ms=timing.decode_s * MS_PER_S,
            detection_wait_ms=record.detection_wait_s * MS_PER_S,
            coverage_ms=grounding.time_s * MS_PER_S if grounding else 0.0,
            total_ms=timing.total_s * MS_PER_S,
            dropped_frames=record.dropped,
            steps=timing.steps,
        ),
        model=caption.model,
        engine=caption.engine,
        status=getattr(types.Caption, f"STATUS_{record.status.name}"),
        status_message=record.status_message,
    )


def from_message(message: Any, *, camera: str | None = None, source: str = "") -> CaptionRecord:
    """Convert a message that has just been received; its numbers and indices are checked, as any node may publish it.

    Args:
        camera: name of the camera in the record; None takes the name in the message.
    """
    timing, coverage = message.timing, message.coverage
    caption = Caption(
        text=message.text,
        words=tuple(Word(w.text, w.log_probability, _xyxy(w.box)) for w in message.words),
        score=message.score,
        confidence=message.confidence,
        calibrated_confidence=_finite(message.calibrated_confidence),
        alternatives=tuple(Alternative(a.text, a.score) for a in message.alternatives),
        objects=tuple(DetectedObject(o.class_name, o.class_id, o.score, _xyxy(o.box)) for o in message.objects),
        timing=Timing(
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
    reason = COVERAGE_REASONS.get(coverage.reason, CoverageReason.FAILED)
    return CaptionRecord(
        caption=caption,
        camera=message.camera if camera is None else camera,
        source=source,
        status=CAPTION_STATUSES.get(message.status, CaptionStatus.ERROR),
        status_message=message.status_message,
        stamp_ns=stamp_ns(message.header) or None,
        frame_id=message.header.frame_id,
        grounding=_grounding(message, reason),
        coverage_reason=reason,
        coverage_message=coverage.reason_message,
        # 0 or less: the image has no stamp, its stamp lies in the future, or the clock of the node has not started.
        age_at_start_s=timing.age_at_start_ms / MS_PER_S
        if timing.age_at_start_ms > 0 and math.isfinite(timing.age_at_start_ms)
        else None,
        detection_wait_s=timing.detection_wait_ms / MS_PER_S,
        dropped=int(timing.dropped_frames),
    )


def stamp_ns(header: Any) -> int:
    """Return the stamp of a header in nanoseconds; 0 for a header without a stamp."""
    return int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)


def _noun(types: Any, noun: GroundedNoun) -> Any:
    return types.GroundedNoun(
        noun=noun.text,
        lemma=noun.lemma,
        word_index=noun.word_index,
        object_index=types.GroundedNoun.NO_OBJECT if noun.object_index is None else noun.object_index,
        similarity=noun.similarity,
    )


def _coverage(types: Any, record: CaptionRecord) -> Any:
    reason = getattr(types.Coverage, f"REASON_{record.coverage_reason.name}")
    grounding = record.grounding
    if grounding is None or grounding.coverage is None:
        return types.Coverage(reason=reason, reason_message=record.coverage_message)
    return types.Coverage(
        valid=True,
        reason=reason,
        reason_message=record.coverage_message,
        noun_coverage=grounding.coverage,
        noun_support=grounding.noun_support or 0.0,
        missed_classes=list(grounding.missed_classes),
        unsupported_nouns=list(grounding.unsupported_nouns),
        out_of_vocabulary_nouns=list(grounding.out_of_vocabulary_nouns),
    )


def _grounding(message: Any, reason: CoverageReason) -> Grounding | None:
    """Convert the nouns and the coverage; nouns whose word index is out of range are left out."""
    coverage, words, objects = message.coverage, len(message.words), len(message.objects)
    nouns = [
        GroundedNoun(
            noun.noun,
            noun.lemma,
            noun.word_index,
            noun.object_index if 0 <= noun.object_index < objects else None,
            noun.similarity,
        )
        for noun in message.nouns
        if 0 <= noun.word_index < words
    ]
    measured = {
        "noun_coverage": _finite(coverage.noun_coverage),
        "noun_support": _finite(coverage.noun_support) if nouns else None,
        "missed_classes": coverage.missed_classes,
        "unsupported_nouns": coverage.unsupported_nouns,
        "out_of_vocabulary_nouns": coverage.out_of_vocabulary_nouns,
    }
    return grounding_with(nouns, reason, measured if coverage.valid else None, message.timing.coverage_ms / MS_PER_S)


def _box(types: Any, xyxy: tuple[float, ...]) -> Any:
    x1, y1, x2, y2 = map(float, xyxy)
    return types.BoundingBox(x1=x1, y1=y1, x2=x2, y2=y2)


def _xyxy(box: Any) -> tuple[float, float, float, float]:
    return box.x1, box.y1, box.x2, box.y2


def _finite(value: float) -> float | None:
    """Return a number, or None for NaN and infinity."""
    return value if math.isfinite(value) else None
