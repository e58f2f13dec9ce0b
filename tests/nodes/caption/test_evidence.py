"""Objects reach the caption of their image and no other, and lie inside it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.nodes.caption.detection_buffer import DetectionBuffer, Detections
from smart_caption_ros.nodes.caption.evidence import ObjectOrigin, clip_to_image, collect_evidence
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.record import CoverageReason
from tests.nodes.fake_captioner import BREAKS_COVERAGE, FakeCaptioner, FakeCoverage, shade_caption

SECOND = 10**9
SHADE = DetectedObject("shade", 3, 0.75, (-10.0, 5.0, 40.0, 90.0))


def topic(*stamps_ns):
    buffer = DetectionBuffer()
    for stamp_ns in stamps_ns:
        buffer.add(Detections(stamp_ns, "eye", (SHADE,)))
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
        assert evidence.grounding is not None
        assert evidence.grounding.coverage is None
    else:
        (found,) = evidence.caption.objects
        assert found.box_xyxy == (0.0, 5.0, 40.0, 48.0), "cut at the edges of the image"
        assert evidence.grounding is not None
        assert evidence.grounding.coverage == 1.0
        assert evidence.grounding.nouns[0].object_index == 0


def test_without_slop_only_the_same_stamp_counts():
    evidence = collect(caption(), 5 * SECOND + 1, topic(5 * SECOND), slop_s=0.0)
    assert evidence.missing_reason == "the nearest detections are 0.000 s away, and detection_slop_s is 0"


def test_another_camera_has_no_part_in_it():
    evidence = collect(caption(), 5 * SECOND, topic(5 * SECOND), frame_id="other eye")
    assert evidence.missing_reason == "the last detections are of the frame eye, and the image is of other eye"
    assert collect(caption(), SECOND, topic()).missing_reason == "no detections have arrived"


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        (Detections(7, "eye", ()), "the last detections are 1000000 s away: the clocks of detector and camera differ"),
        (Detections(10**6 * SECOND, "rear", ()), "the last detections are of the frame rear, and the image is of eye"),
    ],
)
def test_a_detector_whose_clock_or_frame_changes_is_reported_at_once(last, sentence):
    given = topic(10**6 * SECOND - 5 * SECOND)
    given.add(last)
    assert collect(caption(), 10**6 * SECOND, given).missing_reason == sentence


def test_an_own_detector_without_the_topic_finds_the_objects():
    own = DetectedObject("wall", 0, 0.5, (0.0, 0.0, 9.0, 9.0))
    evidence = collect(caption((own,)), 5 * SECOND, None, has_detector=True)
    assert (evidence.origin, evidence.caption.objects) == (ObjectOrigin.DETECTOR, (own,))


@pytest.mark.parametrize("stamp_ns", [5 * SECOND, 9 * SECOND])
def test_beside_the_topic_the_own_detector_stands_in_for_what_it_lacks(stamp_ns):
    own = DetectedObject("wall", 0, 0.5, (0.0, 0.0, 9.0, 9.0))
    evidence = collect(caption((own,)), stamp_ns, topic(5 * SECOND), has_detector=True)
    assert [detected.class_name for detected in evidence.caption.objects] == [
        "shade" if stamp_ns == 5 * SECOND else "wall"
    ]
    assert evidence.origin is (ObjectOrigin.SAME_STAMP if stamp_ns == 5 * SECOND else ObjectOrigin.DETECTOR)
    assert bool(evidence.missing_reason) == (stamp_ns != 5 * SECOND), "that it stands in is reported"


@pytest.mark.parametrize(
    ("shade", "stamp_ns", "changes", "reason", "sentence"),
    [
        (9, 5 * SECOND, {}, CoverageReason.NONE, ""),
        (0, 5 * SECOND, {}, CoverageReason.NO_NOUNS, "the caption has no nouns"),
        (
            BREAKS_COVERAGE,
            5 * SECOND,
            {},
            CoverageReason.FAILED,
            "coverage failed: RuntimeError: the dictionary is on fire",
        ),
        (9, 5 * SECOND, {"coverage": None}, CoverageReason.DISABLED, "noun coverage is off or could not be loaded"),
        (9, 5 * SECOND, {"without_topic": True}, CoverageReason.DISABLED, "objects_from is none"),
        (
            9,
            5 * SECOND,
            {"without_topic": True, "uses_topic": True},
            CoverageReason.NO_DETECTIONS,
            "the image is of no camera of the node, and has no detections",
        ),
        (9, 0, {}, CoverageReason.NO_DETECTIONS, "the image has no stamp"),
        (
            9,
            4 * SECOND,
            {},
            CoverageReason.NO_DETECTIONS,
            "the nearest detections are 1.000 s away, and detection_slop_s is 0.1",
        ),
        (
            9,
            6 * SECOND,
            {},
            CoverageReason.DETECTIONS_LATE,
            "the nearest detections are 1.000 s away, and detection_slop_s is 0.1",
        ),
        (
            9,
            5 * SECOND,
            {"without_topic": True, "has_detector": True},
            CoverageReason.NO_OBJECTS,
            "the detector found no objects in the image",
        ),
    ],
)
def test_the_reason_says_why_coverage_was_not_measured(shade, stamp_ns, changes, reason, sentence):
    spoken = Caption(**{**vars(shade_caption(shade, 64, 48)), "objects": ()})
    detections = None if changes.pop("without_topic", False) else topic(5 * SECOND)
    evidence = collect(spoken, stamp_ns, detections, **changes)
    assert evidence.coverage_reason == (reason, sentence)


def test_without_topic_and_detector_there_are_no_objects_and_none_are_missed():
    evidence = collect(caption(), 5 * SECOND, None)
    assert (evidence.origin, evidence.caption.objects, evidence.missing_reason) == (ObjectOrigin.NONE, (), "")


def test_with_coverage_off_the_objects_are_there_all_the_same():
    evidence = collect(caption(), 5 * SECOND, topic(5 * SECOND), coverage=None)
    assert evidence.grounding is None
    assert [detected.class_name for detected in evidence.caption.objects] == ["shade"]


edges = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(edges, edges, edges, edges), max_size=5), st.integers(1, 4000), st.integers(1, 4000))
def test_what_is_cut_at_the_edges_lies_inside_and_has_an_area(boxes, width, height):
    for detected in clip_to_image([DetectedObject("dog", 1, 0.5, box) for box in boxes], width, height):
        left, top, right, bottom = detected.box_xyxy
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
