"""Collect the evidence for a caption: the objects in its image, and the nouns of the caption that name them."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.detection.boxes import clip_boxes
from smart_caption_ros.grounding.named_objects import Grounding, ground_caption
from smart_caption_ros.nodes.caption.detection_buffer import FoundDetections
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.record import CoverageReason, coverage_reason_of


class ObjectOrigin(enum.Enum):
    """Where the objects of a caption come from; the values are part of keys on /diagnostics."""

    DETECTOR = "objects of the own detector"
    SAME_STAMP = "detections of their stamp"
    NEAREST_STAMP = "detections nearby"
    NONE = "no detections"


@dataclass(frozen=True)
class Evidence:
    """A caption with its objects and their grounding.

    Attributes:
        grounding: nouns and coverage; None if coverage is off or failed.
        missing_reason: why no detections of the topic belong to the image; empty if some do or the topic is not used.
        coverage_error: why coverage failed; empty if it did not.
        detections_late: whether the detections of the image may still arrive.
    """

    caption: Caption
    origin: ObjectOrigin
    grounding: Grounding | None = None
    missing_reason: str = ""
    coverage_error: str = ""
    detections_late: bool = False

    @property
    def coverage_reason(self) -> tuple[CoverageReason, str]:
        """Why coverage or a part of it was not measured, and the reason in one sentence."""
        if self.coverage_error:
            return CoverageReason.FAILED, self.coverage_error
        if self.grounding is None:
            return CoverageReason.DISABLED, "noun coverage is off or could not be loaded"
        if self.origin is not ObjectOrigin.NONE or self.grounding.coverage is not None:
            return coverage_reason_of(self.grounding)
        if not self.missing_reason:
            return CoverageReason.DISABLED, "objects_from is none"
        reason = CoverageReason.DETECTIONS_LATE if self.detections_late else CoverageReason.NO_DETECTIONS
        return reason, self.missing_reason


def collect_evidence(caption: Caption, model: Model, found: FoundDetections | None) -> Evidence:
    """Collect the evidence for a caption; never raises.

    Args:
        found: detections of the topic, which take precedence over the objects of the detector; None if the topic is
            not used, or for an image of a request whose camera is unknown or not subscribed.
    """
    if found is None and model.uses_topic:
        found = FoundDetections(None, missing_reason="the image was sent in a request and has no detections")
    has_detector = model.captioner.detector is not None
    evidence = Evidence(caption, ObjectOrigin.DETECTOR if has_detector else ObjectOrigin.NONE)
    if found is not None and found.objects is not None:
        origin = ObjectOrigin.NEAREST_STAMP if found.distance_s else ObjectOrigin.SAME_STAMP
        evidence = Evidence(replace(caption, objects=clip_to_image(found.objects, *caption.image_size)), origin)
    elif found is not None:
        evidence = replace(evidence, missing_reason=found.missing_reason, detections_late=found.are_late)
    if model.coverage is None:
        return evidence
    try:
        with model.coverage_lock:
            return replace(evidence, grounding=ground_caption(model.coverage, evidence.caption))
    except Exception as error:  # the caption is published without its coverage
        return replace(evidence, coverage_error=f"coverage failed: {type(error).__name__}: {error}")


def clip_to_image(objects: Sequence[DetectedObject], width: int, height: int) -> tuple[DetectedObject, ...]:
    """Clip the boxes of objects, in pixels, to the image; leave out objects outside of it."""
    boxes = clip_boxes(np.array([item.box_xyxy for item in objects], np.float64).reshape(-1, 4), width, height)
    inside = np.all(boxes[:, 2:] > boxes[:, :2], axis=1).tolist()
    return tuple(
        replace(item, box_xyxy=tuple(box))
        for item, box, kept in zip(objects, boxes.tolist(), inside, strict=True)
        if kept
    )
