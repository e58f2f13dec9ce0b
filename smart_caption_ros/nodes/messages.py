"""Convert between the captioner's dataclasses and the ROS messages."""

from __future__ import annotations

from std_msgs.msg import Header

from smart_caption_ros import captioning
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.live import CaptionStatus, status_of
from smart_caption_ros.msg import (
    BoundingBox,
    Caption,
    CaptionAlternative,
    CaptionTiming,
    CaptionWord,
    Coverage,
    DetectedObject,
)
from smart_caption_ros.msg import GroundedNoun as GroundedNounMessage

CAPTION_STATUSES = {
    Caption.STATUS_OK: CaptionStatus.OK,
    Caption.STATUS_NOTHING_FOUND: CaptionStatus.NOTHING_FOUND,
    Caption.STATUS_LOW_CONFIDENCE: CaptionStatus.LOW_CONFIDENCE,
    Caption.STATUS_STALE: CaptionStatus.STALE,
    Caption.STATUS_ERROR: CaptionStatus.ERROR,
}
STATUS_NAMES = {number: status.value for number, status in CAPTION_STATUSES.items()}

_STATUS_NUMBERS = {status: number for number, status in CAPTION_STATUSES.items()}
_MS_PER_S = 1000.0


def to_message(
    caption: captioning.Caption,
    header: Header,
    *,
    camera: str,
    min_confidence: float,
    grounding: Grounding | None = None,
    coverage_reason: tuple[int, str] = (Coverage.REASON_NONE, ""),
) -> Caption:
    """Convert a caption to a message and set its status.

    Args:
        caption: the caption.
        header: header of the source image; copied unchanged.
        camera: name of the camera.
        min_confidence: captions below it get STATUS_LOW_CONFIDENCE.
        grounding: nouns and coverage of the caption; None where coverage is off.
        coverage_reason: why something of the coverage was not measured, a constant of Coverage and a sentence.
    """
    status, status_message = status_of(caption, min_confidence)
    timing = caption.timing
    return Caption(
        format_version=Caption.FORMAT_VERSION,
        header=header,
        image_width=caption.image_size[0],
        image_height=caption.image_size[1],
        camera=camera,
        text=caption.text,
        words=[
            CaptionWord(text=w.text, log_probability=float(w.log_probability), box=_box(w.box_xyxy))
            for w in caption.words
        ],
        score=float(caption.score),
        confidence=float(caption.confidence),
        alternatives=[CaptionAlternative(text=a.text, score=float(a.score)) for a in caption.alternatives],
        objects=[
            DetectedObject(
                class_name=o.class_name, class_id=int(o.class_id), score=float(o.score), box=_box(o.box_xyxy)
            )
            for o in caption.objects
        ],
        nouns=[_noun(each) for each in grounding.nouns] if grounding else [],
        coverage=_coverage(grounding, *coverage_reason),
        timing=CaptionTiming(
            preprocess_ms=timing.preprocess_s * _MS_PER_S,
            vision_ms=timing.vision_s * _MS_PER_S,
            decode_ms=timing.decode_s * _MS_PER_S,
            coverage_ms=grounding.time_s * _MS_PER_S if grounding else 0.0,
            total_ms=timing.total_s * _MS_PER_S,
            steps=timing.steps,
        ),
        model=caption.model,
        engine=caption.engine,
        status=_STATUS_NUMBERS[status],
        status_message=status_message,
    )


def message_without_text(status: int, status_message: str, header: Header, *, camera: str) -> Caption:
    """Build the message for an image that was not captioned; `status_message` says why."""
    coverage = Coverage(reason=Coverage.REASON_NOT_CAPTIONED, reason_message="the image was not captioned")
    return Caption(
        format_version=Caption.FORMAT_VERSION,
        header=header,
        camera=camera,
        coverage=coverage,
        status=status,
        status_message=status_message,
    )


def from_message(message: Caption) -> captioning.Caption:
    """Convert a message to a caption, for programs that receive captions and draw them."""
    timing = message.timing
    return captioning.Caption(
        text=message.text,
        words=tuple(captioning.Word(w.text, w.log_probability, _xyxy(w.box)) for w in message.words),
        score=message.score,
        confidence=message.confidence,
        alternatives=tuple(captioning.Alternative(a.text, a.score) for a in message.alternatives),
        objects=tuple(
            captioning.DetectedObject(o.class_name, o.class_id, o.score, _xyxy(o.box)) for o in message.objects
        ),
        timing=captioning.Timing(
            preprocess_s=timing.preprocess_ms / _MS_PER_S,
            vision_s=timing.vision_ms / _MS_PER_S,
            decode_s=timing.decode_ms / _MS_PER_S,
            total_s=timing.total_ms / _MS_PER_S,
            steps=timing.steps,
        ),
        image_size=(message.image_width, message.image_height),
        model=message.model,
        engine=message.engine,
    )


def grounding_of(message: Caption) -> Grounding:
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
        coverage=coverage.noun_coverage if coverage.valid else None,
        noun_support=coverage.noun_support if coverage.valid and message.nouns else None,
        missed_classes=tuple(coverage.missed_classes),
        unsupported_nouns=tuple(coverage.unsupported_nouns),
        out_of_vocabulary_nouns=tuple(coverage.out_of_vocabulary_nouns),
        time_s=message.timing.coverage_ms / _MS_PER_S,
    )


def _noun(noun: GroundedNoun) -> GroundedNounMessage:
    return GroundedNounMessage(
        noun=noun.text,
        lemma=noun.lemma,
        word_index=noun.word_index,
        object_index=GroundedNounMessage.NO_OBJECT if noun.object_index is None else noun.object_index,
        similarity=noun.similarity,
    )


def _coverage(grounding: Grounding | None, reason: int, reason_message: str) -> Coverage:
    if grounding is None or grounding.coverage is None:
        return Coverage(reason=reason, reason_message=reason_message)
    return Coverage(
        valid=True,
        reason=reason,
        reason_message=reason_message,
        noun_coverage=grounding.coverage,
        noun_support=grounding.noun_support or 0.0,
        missed_classes=list(grounding.missed_classes),
        unsupported_nouns=list(grounding.unsupported_nouns),
        out_of_vocabulary_nouns=list(grounding.out_of_vocabulary_nouns),
    )


def _box(xyxy: tuple[float, ...]) -> BoundingBox:
    x1, y1, x2, y2 = map(float, xyxy)
    return BoundingBox(x1=x1, y1=y1, x2=x2, y2=y2)


def _xyxy(box: BoundingBox) -> tuple[float, float, float, float]:
    return box.x1, box.y1, box.x2, box.y2
