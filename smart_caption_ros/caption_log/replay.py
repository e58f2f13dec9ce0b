"""Rows of the log as the captions that they were: to be shown and drawn like live ones."""

from __future__ import annotations

import math

from smart_caption_ros.caption_log.logged_caption import LoggedCaption
from smart_caption_ros.captioning import Caption, DetectedObject, Timing
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.imaging import decode_image_bytes
from smart_caption_ros.record import CaptionRecord, CaptionStatus, CoverageReason, LazyImage, Pose

_NOWHERE = (math.nan,) * 4


def live_caption_of(row: LoggedCaption) -> CaptionRecord:
    """Return a row as a feed gave it: without the words' probabilities, alternatives and times, which no log keeps.

    In rows of version 2 and older the size of the image is unknown, and nothing is framed: the boxes are NaN.
    """
    boxes = [item.box_xyxy if row.image_size else _NOWHERE for item in row.objects]
    caption = Caption(
        text=row.text,
        words=(),
        score=_number(row.score),
        confidence=_number(row.confidence),
        calibrated_confidence=row.calibrated_confidence,
        alternatives=(),
        timing=Timing(0.0, 0.0, 0.0, 0.0, 0),
        image_size=row.image_size or (0, 0),
        model=row.model,
        engine="",
        objects=tuple(
            DetectedObject(item.class_name, -1, _number(item.score), box)
            for item, box in zip(row.objects, boxes, strict=True)
        ),
    )
    status = next((status for status in CaptionStatus if status.value == row.status), CaptionStatus.OK)
    pose = row.pose
    return CaptionRecord(
        camera=row.camera,
        source=row.robot,
        caption=caption,
        status=status,
        received_s=row.time_ns / 1e9,
        stamp_ns=row.stamp_ns or None,
        frame_id=row.frame_id,
        grounding=_grounding_of(row),
        coverage_reason=CoverageReason.NONE
        if row.objects or any(noun.supported is not None for noun in row.nouns)
        else CoverageReason.DISABLED,
        image=None if row.picture is None else _image_of(row.picture),
        pose=None if pose is None else Pose(pose.frame_id, pose.position, pose.orientation),
    )


def _image_of(jpeg: bytes) -> LazyImage:
    return LazyImage(lambda: decode_image_bytes(jpeg), jpeg)


def _grounding_of(row: LoggedCaption) -> Grounding | None:
    """Return the nouns whose places in the text are known; None where there are none."""
    words = row.text.split()
    nouns = tuple(
        GroundedNoun(
            " ".join(words[noun.word_index : noun.word_index + noun.word_count]),
            noun.lemma,
            noun.word_index,
            noun.object_index,
            1.0 if noun.object_index is not None else 0.0,
        )
        for noun in row.nouns
        if noun.word_index is not None and noun.word_index + noun.word_count <= len(words)
    )
    if not nouns:
        return None
    named = {row.objects[noun.object_index].class_name for noun in nouns if noun.object_index is not None}
    supported = [noun.supported for noun in row.nouns if noun.supported is not None]
    return Grounding(
        nouns=nouns,
        coverage=row.coverage,
        noun_support=sum(supported) / len(supported) if supported else None,
        missed_classes=tuple(dict.fromkeys(o.class_name for o in row.objects if o.class_name not in named)),
        unsupported_nouns=tuple(noun.lemma for noun in row.nouns if noun.supported is False),
        out_of_vocabulary_nouns=(),
        time_s=0.0,
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value
