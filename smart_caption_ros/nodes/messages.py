"""Convert between the captioner's dataclasses and the ROS messages."""

from __future__ import annotations

from std_msgs.msg import Header

from smart_caption_ros import caption_messages, captioning, msg
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.live import CaptionStatus
from smart_caption_ros.msg import BoundingBox, Caption, Coverage

CAPTION_STATUSES = {
    Caption.STATUS_OK: CaptionStatus.OK,
    Caption.STATUS_NOTHING_FOUND: CaptionStatus.NOTHING_FOUND,
    Caption.STATUS_LOW_CONFIDENCE: CaptionStatus.LOW_CONFIDENCE,
    Caption.STATUS_STALE: CaptionStatus.STALE,
    Caption.STATUS_ERROR: CaptionStatus.ERROR,
}
STATUS_NAMES = {number: status.value for number, status in CAPTION_STATUSES.items()}


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
    message: Caption = caption_messages.caption_message(
        msg,
        caption,
        header,
        camera=camera,
        min_confidence=min_confidence,
        grounding=grounding,
        coverage_reason=coverage_reason,
    )
    return message


def message_without_text(status: int, status_message: str, header: Header, *, camera: str) -> Caption:
    """Build the message for an image that was not captioned; `status_message` says why."""
    message: Caption = caption_messages.message_without_text(msg, status, status_message, header, camera=camera)
    return message


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
            preprocess_s=timing.preprocess_ms / caption_messages.MS_PER_S,
            vision_s=timing.vision_ms / caption_messages.MS_PER_S,
            decode_s=timing.decode_ms / caption_messages.MS_PER_S,
            total_s=timing.total_ms / caption_messages.MS_PER_S,
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
        time_s=message.timing.coverage_ms / caption_messages.MS_PER_S,
    )


def _xyxy(box: BoundingBox) -> tuple[float, float, float, float]:
    return box.x1, box.y1, box.x2, box.y2
