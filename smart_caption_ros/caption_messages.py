"""Build Caption messages from captions, with the message classes of rclpy or those that rosbags makes."""

from __future__ import annotations

from typing import Any, Protocol

from smart_caption_ros import captioning
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.live import status_of

MS_PER_S = 1000.0


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
    coverage_reason: tuple[int, str],
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
        alternatives=[types.CaptionAlternative(text=a.text, score=float(a.score)) for a in caption.alternatives],
        objects=[
            types.DetectedObject(
                class_name=o.class_name, class_id=int(o.class_id), score=float(o.score), box=_box(types, o.box_xyxy)
            )
            for o in caption.objects
        ],
        nouns=[_noun(types, each) for each in grounding.nouns] if grounding else [],
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
        coverage=types.Coverage(
            reason=types.Coverage.REASON_NOT_CAPTIONED, reason_message="the image was not captioned"
        ),
        status=status,
        status_message=status_message,
    )


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
