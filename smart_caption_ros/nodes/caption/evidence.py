"""Collect the evidence for a caption: the objects in its image, and the nouns that name them."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from std_msgs.msg import Header

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.detection.boxes import clip_boxes
from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.grounding.named_objects import Grounding, ground_caption
from smart_caption_ros.msg import Coverage
from smart_caption_ros.nodes.detection_buffer import DetectionBuffer
from smart_caption_ros.nodes.detection_messages import stamp_ns


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
        caption: the caption with its objects.
        origin: where the objects come from.
        grounding: nouns and coverage; None where coverage is off or failed.
        missing_reason: why no detections belong to the image; empty where some do, or where none were needed.
        coverage_error: why coverage failed; empty where it did not.
        detections_late: whether the detections of the image may still be on their way.
        waited_s: time waited for detections.
    """

    caption: Caption
    origin: ObjectOrigin
    grounding: Grounding | None = None
    missing_reason: str = ""
    coverage_error: str = ""
    detections_late: bool = False
    waited_s: float = 0.0


@dataclass(frozen=True)
class EvidenceCollector:
    """Collects the evidence for captions.

    Attributes:
        has_detector: whether captions come with the objects of the node's own detector.
        uses_topic: whether the detections topic is used; its objects take precedence over those of the detector.
        detections: the messages of the detections topic.
        coverage: finds nouns and matches them with objects; None where coverage is off.
        slop_s: maximum time between an image and detections with another stamp.
        wait_s: maximum time to wait for the detections of an image.
        coverage_lock: held while coverage is used, which is not thread-safe.
    """

    has_detector: bool
    uses_topic: bool
    detections: DetectionBuffer
    coverage: NounCoverage | None
    slop_s: float
    wait_s: float
    coverage_lock: threading.Lock = field(default_factory=threading.Lock)

    def collect(self, caption: Caption, header: Header) -> Evidence:
        """Collect the evidence for the caption of the image with this header; never raises."""
        evidence = self._with_objects(caption, header)
        if self.coverage is None:
            return evidence
        try:
            with self.coverage_lock:
                return replace(evidence, grounding=ground_caption(self.coverage, evidence.caption))
        except Exception as error:  # the caption is published without its coverage
            return replace(evidence, coverage_error=f"coverage failed: {type(error).__name__}: {error}")

    def objects_of_topic(self, header: Header) -> tuple[DetectedObject, ...] | None:
        """Return the objects on the detections topic of the image with this header; None where it has none.

        Waits for them as :meth:`collect` does.
        """
        stamp = stamp_ns(header)
        if not self.uses_topic or not stamp:
            return None
        found = self.detections.nearest(stamp, header.frame_id, wait_s=self.wait_s)
        return None if found is None or abs(found.stamp_ns - stamp) / 1e9 > self.slop_s else found.objects

    def _with_objects(self, caption: Caption, header: Header) -> Evidence:
        detected = Evidence(caption, ObjectOrigin.DETECTOR)
        if not self.uses_topic:
            return detected if self.has_detector else Evidence(caption, ObjectOrigin.NONE)
        from_topic = self._with_objects_of_topic(caption, header)
        if self.has_detector and from_topic.origin is ObjectOrigin.NONE:
            return replace(detected, waited_s=from_topic.waited_s)
        return from_topic

    def _with_objects_of_topic(self, caption: Caption, header: Header) -> Evidence:
        stamp = stamp_ns(header)
        if not stamp:
            return Evidence(caption, ObjectOrigin.NONE, missing_reason="the image has no stamp")
        started_s = time.monotonic()
        found = self.detections.nearest(stamp, header.frame_id, wait_s=self.wait_s)
        nothing = Evidence(
            caption,
            ObjectOrigin.NONE,
            detections_late=self.detections.awaits(stamp, header.frame_id),
            waited_s=time.monotonic() - started_s if self.wait_s else 0.0,
        )
        if found is None:
            return replace(nothing, missing_reason="there are no detections of this camera")
        distance_s = abs(found.stamp_ns - stamp) / 1e9
        if distance_s > self.slop_s:
            reason = f"the nearest detections are {distance_s:.3f} s away, and detection_slop_s is {self.slop_s:g}"
            return replace(nothing, missing_reason=reason)
        caption = replace(caption, objects=clip_to_image(found.objects, *caption.image_size))
        origin = ObjectOrigin.NEAREST_STAMP if distance_s else ObjectOrigin.SAME_STAMP
        return Evidence(caption, origin, waited_s=nothing.waited_s)


def coverage_reason(evidence: Evidence) -> tuple[int, str]:
    """Return why something of the coverage was not measured, a constant of the message Coverage and a sentence."""
    grounding = evidence.grounding
    if evidence.coverage_error:
        return Coverage.REASON_FAILED, evidence.coverage_error
    if grounding is None:
        return Coverage.REASON_DISABLED, "noun coverage is off or could not be loaded"
    if grounding.coverage is not None:
        return (Coverage.REASON_NONE, "") if grounding.nouns else (Coverage.REASON_NO_NOUNS, "the caption has no nouns")
    if evidence.origin is not ObjectOrigin.NONE:
        return Coverage.REASON_NO_OBJECTS, "the detector found no objects in the image"
    if not evidence.missing_reason:
        return Coverage.REASON_DISABLED, "objects_from is none"
    reason = Coverage.REASON_DETECTIONS_LATE if evidence.detections_late else Coverage.REASON_NO_DETECTIONS
    return reason, evidence.missing_reason


def clip_to_image(objects: Sequence[DetectedObject], width: int, height: int) -> tuple[DetectedObject, ...]:
    """Clip the boxes of objects to the image; objects outside it are left out.

    Args:
        objects: boxes in pixels of the image.
        width: width of the image in pixels.
        height: height of the image in pixels.
    """
    boxes = clip_boxes(np.array([each.box_xyxy for each in objects], np.float64).reshape(-1, 4), width, height)
    inside = np.all(boxes[:, 2:] > boxes[:, :2], axis=1).tolist()
    return tuple(
        replace(each, box_xyxy=tuple(box))
        for each, box, kept in zip(objects, boxes.tolist(), inside, strict=True)
        if kept
    )
