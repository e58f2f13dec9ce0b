"""What speaks for a caption beside the model itself: the objects in the image, and how far the caption names them."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from std_msgs.msg import Header

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.grounding import CoverageOptions, NounCoverage
from smart_caption_ros.grounding.named_objects import Grounding, ground
from smart_caption_ros.nodes.detection_buffer import DetectionBuffer
from smart_caption_ros.nodes.detection_input import stamp_ns


class Origin(enum.Enum):
    """Where the objects of a caption are from."""

    DETECTOR = "objects of the own detector"
    SAME_STAMP = "detections of their stamp"
    NEARBY = "detections nearby"
    NOWHERE = "no detections"


@dataclass(frozen=True)
class Evidence:
    """A caption with its objects, and what follows from them.

    Attributes:
        caption: with the objects.
        origin: where these are from.
        grounding: None where coverage is off or has failed.
        missing: why there are no objects to compare with; empty where there are, or where none were expected.
        failure: why coverage failed; empty where it did not.
    """

    caption: Caption
    origin: Origin
    grounding: Grounding | None = None
    missing: str = ""
    failure: str = ""


@dataclass(frozen=True)
class Gatherer:
    """Finds the evidence for captions.

    Attributes:
        has_detector: whether captions come with the objects of an own detector.
        prefers_detections: whether objects from the detections topic, where there are any for the image, take their
            place.
        detections: what came on the detections topic.
        coverage: None where coverage is off.
        slop_s: how far detections may be from an image.
        wait_s: how long to wait for the detections of an image.
    """

    has_detector: bool
    prefers_detections: bool
    detections: DetectionBuffer
    coverage: NounCoverage | None
    slop_s: float
    wait_s: float

    def gather(self, caption: Caption, header: Header) -> Evidence:
        """The evidence for the caption of the image with this header; a failure is part of it, and never raised."""
        evidence = self._objects(caption, header)
        if self.coverage is None:
            return evidence
        try:
            return replace(evidence, grounding=ground(self.coverage, evidence.caption))
        except Exception as error:  # a caption is worth publishing without its coverage
            return replace(evidence, failure=f"coverage failed: {type(error).__name__}: {error}")

    def _objects(self, caption: Caption, header: Header) -> Evidence:
        own = Evidence(caption, Origin.DETECTOR)
        if self.has_detector and not self.prefers_detections:
            return own
        detected = self._detected(caption, header)
        return own if self.has_detector and detected.origin is Origin.NOWHERE else detected

    def _detected(self, caption: Caption, header: Header) -> Evidence:
        stamp = stamp_ns(header)
        if not stamp:
            return Evidence(caption, Origin.NOWHERE, missing="the image has no stamp")
        found = self.detections.nearest(stamp, header.frame_id, wait_s=self.wait_s)
        if found is None:
            return Evidence(caption, Origin.NOWHERE, missing="there are no detections of this camera")
        distance_s = abs(found.stamp_ns - stamp) / 1e9
        if distance_s > self.slop_s:
            reason = f"the nearest detections are {distance_s:.3f} s away, and detection_slop is {self.slop_s:g}"
            return Evidence(caption, Origin.NOWHERE, missing=reason)
        objects = inside(found.objects, *caption.image_size)
        return Evidence(replace(caption, objects=objects), Origin.NEARBY if distance_s else Origin.SAME_STAMP)


def inside(objects: Sequence[DetectedObject], width: int, height: int) -> tuple[DetectedObject, ...]:
    """The objects with their boxes cut at the edges of the image, without those that are outside it."""
    cut = []
    for each in objects:
        left, top, right, bottom = each.box_xyxy
        box = (max(left, 0.0), max(top, 0.0), min(right, float(width)), min(bottom, float(height)))
        if box[2] > box[0] and box[3] > box[1]:
            cut.append(replace(each, box_xyxy=box))
    return tuple(cut)


class LoadCoverage(Protocol):
    """`load_coverage`, or what a test puts in its place."""

    def __call__(self, pipeline: str, word_vectors: str, synonyms: str, class_names: Sequence[str]) -> NounCoverage:
        """Loads the measure."""


def load_coverage(pipeline: str, word_vectors: str, synonyms: str, class_names: Sequence[str]) -> NounCoverage:
    """Loads noun coverage; an empty string stands for what ships with the package.

    Args:
        pipeline: name or folder of a spaCy pipeline.
        word_vectors: path of a GloVe text file or of a table.
        synonyms: path of a list of synonyms that count as the class; none by default.
        class_names: names of classes, beside COCO's, that may be several words.

    Raises:
        CoverageError: something is missing or malformed; one sentence.
    """
    expand = os.path.expanduser
    return NounCoverage.load(
        expand(pipeline) or None,
        expand(word_vectors) or None,
        synonyms=expand(synonyms) or None,
        class_list=(*COCO_CLASSES, *class_names),
        options=CoverageOptions(synonyms=bool(synonyms)),
    )
