"""Collect the evidence for a caption: the objects in its image, and the nouns that name them."""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from std_msgs.msg import Header

from smart_caption_ros.caption_messages import stamp_ns
from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.detection.boxes import clip_boxes
from smart_caption_ros.grounding.named_objects import Grounding, ground_caption
from smart_caption_ros.msg import Coverage
from smart_caption_ros.nodes.caption.detection_buffer import DetectionBuffer
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.text import visible

_OTHER_CLOCK_S = 3600.0  # no detector is that late


class ObjectOrigin(enum.Enum):
    """Where the objects of a caption come from; the values are part of keys on /diagnostics."""

    DETECTOR = "objects of the own detector"
    SAME_STAMP = "detections of their stamp"
    NEAREST_STAMP = "detections nearby"
    NONE = "no detections"


@dataclass(frozen=True)
class TopicDetections:
    """The detections topic, as a source of the objects in one image.

    Attributes:
        buffer: the latest messages.
        slop_s: maximum time between the image and detections with another stamp.
        since_s: time.monotonic() from which the wait for the detections of the image counts.
        wait_s: maximum time to wait for them.
    """

    buffer: DetectionBuffer
    slop_s: float
    since_s: float = 0.0
    wait_s: float = 0.0

    def objects(self, header: Header) -> tuple[DetectedObject, ...] | None:
        """Return the objects in the image with this header; None where no detections belong to it."""
        _, objects = self._find(header)
        return None if isinstance(objects, str) else objects

    def evidence(self, caption: Caption, header: Header) -> Evidence:
        """Return the caption with the objects in its image, or without and the reason."""
        distance_s, objects = self._find(header)
        waited_s = time.monotonic() - self.since_s if self.wait_s else 0.0
        if isinstance(objects, str):
            late = bool(stamp_ns(header)) and self.buffer.are_behind(stamp_ns(header), header.frame_id)
            return Evidence(caption, ObjectOrigin.NONE, missing_reason=objects, detections_late=late, waited_s=waited_s)
        caption = replace(caption, objects=clip_to_image(objects, *caption.image_size))
        origin = ObjectOrigin.NEAREST_STAMP if distance_s else ObjectOrigin.SAME_STAMP
        return Evidence(caption, origin, waited_s=waited_s)

    def _find(self, header: Header) -> tuple[float, tuple[DetectedObject, ...] | str]:
        """Return the time between image and detections, seconds, and the objects, or the reason why there are none."""
        stamp = stamp_ns(header)
        if not stamp:
            return 0.0, "the image has no stamp"
        nearest = self.buffer.nearest(stamp, header.frame_id, until_s=self.since_s + self.wait_s)
        newest = self.buffer.newest
        if newest is None:
            return 0.0, "no detections have arrived"
        distance_s = abs((nearest or newest).stamp_ns - stamp) / 1e9
        if nearest is not None and distance_s <= self.slop_s:
            return distance_s, nearest.objects
        if newest.frame_id and header.frame_id and newest.frame_id != header.frame_id:
            return distance_s, (
                f"the last detections are of the frame {visible(newest.frame_id)}, and the image is of "
                f"{visible(header.frame_id)}"
            )
        # Not the distance of the nearest: that may have come before the clock of the detector changed.
        newest_s = abs(newest.stamp_ns - stamp) / 1e9
        if newest_s > _OTHER_CLOCK_S:
            return (
                distance_s,
                f"the last detections are {newest_s:.0f} s away: the clocks of detector and camera differ",
            )
        return distance_s, (
            f"the nearest detections are {distance_s:.3f} s away, and detection_slop_s is {self.slop_s:g}"
        )


@dataclass(frozen=True)
class Evidence:
    """A caption with its objects and their grounding.

    Attributes:
        caption: the caption with its objects.
        origin: where the objects come from.
        grounding: nouns and coverage; None where coverage is off or failed.
        missing_reason: why no detections of the topic belong to the image; empty where some do, or where it is unused.
        coverage_error: why coverage failed; empty where it did not.
        detections_late: whether the detections of the image may still be on their way.
        waited_s: time from the finished caption to its detections, or to the end of the wait; 0 without a wait.
    """

    caption: Caption
    origin: ObjectOrigin
    grounding: Grounding | None = None
    missing_reason: str = ""
    coverage_error: str = ""
    detections_late: bool = False
    waited_s: float = 0.0


def collect_evidence(caption: Caption, header: Header, model: Model, topic: TopicDetections | None) -> Evidence:
    """Collect the evidence for the caption of the image with this header; never raises.

    Args:
        caption: the caption, with the objects of the model's detector.
        header: header of the image.
        model: what captioned it.
        topic: the detections topic, whose objects take precedence over those of the detector; None where it is unused.
    """
    has_detector = model.captioner.detector is not None
    evidence = Evidence(caption, ObjectOrigin.DETECTOR if has_detector else ObjectOrigin.NONE)
    if topic is not None:
        from_topic = topic.evidence(caption, header)
        if from_topic.origin is not ObjectOrigin.NONE or not has_detector:
            evidence = from_topic
        else:
            evidence = replace(evidence, missing_reason=from_topic.missing_reason, waited_s=from_topic.waited_s)
    if model.coverage is None:
        return evidence
    try:
        with model.coverage_lock:
            return replace(evidence, grounding=ground_caption(model.coverage, evidence.caption))
    except Exception as error:  # the caption is published without its coverage
        return replace(evidence, coverage_error=f"coverage failed: {type(error).__name__}: {error}")


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
    boxes = clip_boxes(np.array([item.box_xyxy for item in objects], np.float64).reshape(-1, 4), width, height)
    inside = np.all(boxes[:, 2:] > boxes[:, :2], axis=1).tolist()
    return tuple(
        replace(item, box_xyxy=tuple(box))
        for item, box, kept in zip(objects, boxes.tolist(), inside, strict=True)
        if kept
    )
