"""Objects reach the caption of their image and no other, and lie inside it."""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.nodes.caption.detection_buffer import DetectionBuffer, Detections
from smart_caption_ros.nodes.caption.evidence import ObjectOrigin, collect_evidence
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.record import CoverageReason
from tests.nodes.fake_captioner import BREAKS_COVERAGE, FakeCaptioner, FakeCoverage, shade_caption

SECOND = 10**9
SHADE = DetectedObject("shade", 3, 0.75, (-10.0, 5.0, 40.0, 90.0))


def topic(*detections):
    """A buffer of the given detections; a stamp alone stands for detections with one object."""
    buffer = DetectionBuffer()
    for one in detections:
        buffer.add(Detections(one, "eye", (SHADE,)) if isinstance(one, int) else one)
    return buffer


def collect(
    found,
    stamp_ns,
    topic,
    *,
    frame_id="eye",
    slop_s=0.1,
    has_detector=False,
    coverage=FakeCoverage(),  # noqa: B008 -- it has no state
    uses_topic=None,
):
    captioner = FakeCaptioner(detector=Path("d.onnx") if has_detector else None)
    uses_topic = topic is not None if uses_topic is None else uses_topic
    model = Model(captioner, coverage, uses_topic=uses_topic)
    return collect_evidence(found, model, topic.find(stamp_ns, frame_id, slop_s) if topic is not None else None)


def caption(objects=()):
    return Caption(**{**vars(shade_caption(9, 64, 48)), "objects": objects})


@pytest.mark.parametrize(
    ("stamp_ns", "origin"),
    [
        (5 * SECOND, ObjectOrigin.SAME_STAMP),
        (5 * SECOND + 1, ObjectOrigin.NEAREST_STAMP),
        (5 * SECOND - SECOND // 10, ObjectOrigin.NEAREST_STAMP),
        (5 * SECOND + SECOND // 10 + 1, ObjectOrigin.NONE),
        (0, ObjectOrigin.NONE),
    ],
)
def test_the_stamp_decides_whose_objects_they_are(stamp_ns, origin):
    evidence = collect(caption(), stamp_ns, topic(5 * SECOND))
    assert evidence.origin is origin
    assert bool(evidence.missing_reason) == (origin is ObjectOrigin.NONE)
    if origin is ObjectOrigin.NONE:
        assert not evidence.caption.objects
        assert evidence.grounding.coverage is None
    else:
        (found,) = evidence.caption.objects
        assert found.box_xyxy == (0.0, 5.0, 40.0, 48.0), "cut at the edges of the image"
        assert evidence.grounding.coverage == 1.0
        assert evidence.grounding.nouns[0].object_index == 0


NEW, MOVED, TURNED = 10**6 * SECOND, Detections(7, "eye", ()), Detections(10**6 * SECOND, "rear", ())


@pytest.mark.parametrize(
    ("stamp_ns", "detections", "options", "sentence"),
    [
        (SECOND, topic(), {}, "no detections have arrived"),
        (5 * SECOND + 1, topic(5 * SECOND), {"slop_s": 0.0},
         "the nearest detections are 0.000 s away, and detection_slop_s is 0"),
        (5 * SECOND, topic(5 * SECOND), {"frame_id": "left"},
         "the last detections are of the frame eye, and the image is of left"),
        (NEW, topic(NEW - 5 * SECOND, MOVED),{},
         "the last detections are 1000000 s away: the clocks of detector and camera differ"),
        (NEW, topic(NEW - 5 * SECOND, TURNED), {},
         "the last detections are of the frame rear, and the image is of eye"),
    ],
)  # fmt: skip
def test_why_an_image_has_no_detections_is_known_at_once(stamp_ns, detections, options, sentence):
    assert collect(caption(), stamp_ns, detections, **options).missing_reason == sentence


@pytest.mark.parametrize(
    ("stamp_ns", "detections", "found", "origin", "is_missed"),
    [
        (5 * SECOND, None, "wall", ObjectOrigin.DETECTOR, False),
        (5 * SECOND, topic(5 * SECOND), "shade", ObjectOrigin.SAME_STAMP, False),
        (9 * SECOND, topic(5 * SECOND), "wall", ObjectOrigin.DETECTOR, True),
    ],
)
def test_the_own_detector_stands_in_for_what_the_topic_lacks(stamp_ns, detections, found, origin, is_missed):
    own = DetectedObject("wall", 0, 0.5, (0.0, 0.0, 9.0, 9.0))
    evidence = collect(caption((own,)), stamp_ns, detections, has_detector=True)
    assert [detected.class_name for detected in evidence.caption.objects] == [found]
    assert (evidence.origin, bool(evidence.missing_reason)) == (origin, is_missed)


@pytest.mark.parametrize(
    ("shade", "stamp_s", "changes", "reason", "sentence"),
    [
        (9, 5, {}, "NONE", ""),
        (0, 5, {}, "NO_NOUNS", "the caption has no nouns"),
        (BREAKS_COVERAGE, 5, {}, "FAILED", "coverage failed: RuntimeError: the dictionary is on fire"),
        (9, 5, {"coverage": None}, "DISABLED", "noun coverage is off or could not be loaded"),
        (9, 5, {"without_topic": True}, "DISABLED", "objects_from is none"),
        (9, 5, {"without_topic": True, "uses_topic": True}, "NO_DETECTIONS",
         "the image was sent in a request and has no detections"),
        (9, 0, {}, "NO_DETECTIONS", "the image has no stamp"),
        (9, 4, {}, "NO_DETECTIONS", "the nearest detections are 1.000 s away, and detection_slop_s is 0.1"),
        (9, 6, {}, "DETECTIONS_LATE", "the nearest detections are 1.000 s away, and detection_slop_s is 0.1"),
        (9, 5, {"without_topic": True, "has_detector": True}, "NO_OBJECTS",
         "the detector found no objects in the image"),
    ],
)  # fmt: skip
def test_the_reason_says_why_coverage_was_not_measured(shade, stamp_s, changes, reason, sentence):
    spoken = Caption(**{**vars(shade_caption(shade, 64, 48)), "objects": ()})
    detections = None if changes.pop("without_topic", False) else topic(5 * SECOND)
    evidence = collect(spoken, stamp_s * SECOND, detections, **changes)
    assert evidence.coverage_reason == (CoverageReason[reason], sentence)


edges = st.floats(-1e6, 1e6)
