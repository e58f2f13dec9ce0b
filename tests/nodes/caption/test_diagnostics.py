"""Counts add up, rates follow the last seconds, and the level says what an operator has to know."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from diagnostic_msgs.msg import DiagnosticStatus
from smart_caption_ros.msg import Caption

from smart_caption_ros.grounding.named_objects import Grounding
from smart_caption_ros.nodes.caption.diagnostics import CameraState, NodeState, diagnostic_statuses
from smart_caption_ros.nodes.caption.evidence import Evidence, ObjectOrigin
from smart_caption_ros.nodes.caption.statistics import WINDOW_S, Count, Statistics
from tests.nodes.fake_captioner import shade_caption

pytestmark = pytest.mark.needs_ros

STATE = NodeState(
    name="caption_node",
    lifecycle="active",
    enabled=True,
    failure="",
    in_work_s=0.0,
    lacks_clock=False,
    model="smart",
    bundle="/bundles/smart",
    engine="fast one",
    engine_choice="fast one, as asked for",
    engine_fallbacks=(),
    nodes_of_this_name=1,
    memory_mb=417.25,
    requests_answered=3,
    requests_refused=84,
    coverage="on",
    coverage_problem="",
)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def statistics(clock: Clock) -> Statistics:
    return Statistics(clock)


def count_answer(statistics: Statistics, status: int = Caption.STATUS_OK, message: str = "") -> None:
    statistics.count_answer(status, message, latency_s=0.2, work_s=0.1)


def count_evidence(
    statistics: Statistics,
    origin: ObjectOrigin,
    *,
    coverage: float | None = None,
    missing_reason: str = "",
    coverage_error: str = "",
) -> None:
    grounding = Grounding((), coverage, None, (), (), (), time_s=0.003) if coverage is not None else None
    evidence = Evidence(shade_caption(9, 64, 48), origin, grounding, missing_reason, coverage_error)
    statistics.count_evidence(evidence, detections_expected=True)


def camera(statistics: Statistics, name: str = "left", problem: str = "", detection_problem: str = "") -> CameraState:
    return CameraState(
        name=name,
        topic="/image",
        image_topics="/image or /image/compressed",
        image_problem=problem,
        detection_problem=detection_problem,
        objects_from="/detections",
        summary=statistics.summary(),
    )


def report(statistics: Statistics, state: NodeState = STATE) -> tuple[bytes, str, dict[str, str]]:
    (status,) = diagnostic_statuses(state, [camera(statistics)])
    return status.level, status.message, values_of(status)


def values_of(status: DiagnosticStatus) -> dict[str, str]:
    return {value.key: value.value for value in status.values}


def test_the_numbers_add_up(statistics: Statistics, clock: Clock) -> None:
    for place in range(10):
        clock.now_s += 0.5
        statistics.count_received(lost=4 * (place == 0))
    for _ in range(2):
        statistics.count(Count.DROPPED)
        statistics.count_detections(left_out=2, replaces=True)
    statistics.count(Count.PASSED_OVER)
    statistics.count(Count.UNCHANGED)
    for status in (Caption.STATUS_OK, Caption.STATUS_OK, Caption.STATUS_LOW_CONFIDENCE, Caption.STATUS_STALE):
        count_answer(statistics, status)
    count_answer(statistics, Caption.STATUS_ERROR, "broken")
    statistics.count_answer(Caption.STATUS_NOTHING_FOUND, "", latency_s=0.8, work_s=0.4)
    count_evidence(statistics, ObjectOrigin.SAME_STAMP, coverage=0.25)
    count_evidence(statistics, ObjectOrigin.NEAREST_STAMP, coverage=0.75)
    count_evidence(statistics, ObjectOrigin.NEAREST_STAMP, coverage_error="the dictionary is on fire")
    count_evidence(statistics, ObjectOrigin.NONE, missing_reason="too far")
    level, _, values = report(statistics)
    assert level == DiagnosticStatus.ERROR
    expected = {
        "state": "active",
        "captioning": "on",
        "model": "smart",
        "bundle": "/bundles/smart",
        "engine": "fast one",
        "engine choice": "fast one, as asked for",
        "engine fall-backs": "",
        "resident memory (MB)": "417.2",
        "requests answered": "3",
        "requests refused as busy": "84",
        "image topic": "/image",
        "images received": "10",
        "images answered": "6",
        "answered ok": "2",
        "answered low confidence": "1",
        "answered nothing found": "1",
        "answered stale": "1",
        "answered error": "1",
        "images dropped for newer ones": "2",
        "images lost on the way": "4",
        "images passed over": "1",
        "images unchanged": "1",
        "images per second": "2.00",
        "answers per second": "1.20",
        "age p50 (ms)": "200.0",
        "age p95 (ms)": "650.0",
        "age p99 (ms)": "770.0",
        "mean work (ms)": "150.0",
        "image in work for (s)": "0.0",
        "last error": "broken",
        "objects from": "/detections",
        "detections received": "2",
        "detections replaced by others of their image": "2",
        "detected objects left out": "4",
        "captions with objects of the own detector": "0",
        "captions with detections of their stamp": "1",
        "captions with detections nearby": "2",
        "captions with no detections": "1",
        "coverage": "on",
        "mean coverage": "0.500",
        "mean coverage work (ms)": "3.0",
        "coverage failures": "1",
    }
    assert values == expected
    assert statistics.summary().in_progress == 0


def test_several_cameras_have_a_status_each_beside_that_of_the_node(clock: Clock) -> None:
    front, rear = Statistics(clock), Statistics(clock)
    clock.now_s += 2.0
    rear.count_received()
    clock.now_s += 2.0
    for _ in range(8):
        front.count_received()
        count_answer(front)
    node, of_front, of_rear = diagnostic_statuses(STATE, [camera(front, "front"), camera(rear, "rear")])
    assert [(s.name, s.hardware_id) for s in (node, of_front, of_rear)] == [
        ("caption_node: captions", ""),
        ("caption_node: captions of front", "front"),
        ("caption_node: captions of rear", "rear"),
    ]
    assert [s.message for s in (node, of_front, of_rear)] == [
        "captioning, 2.0 images a second",
        "captioning, 2.0 images a second",
        "captioning, 0.0 images a second",
    ]
    assert [values_of(s).get("images received") for s in (node, of_front, of_rear)] == [None, "8", "1"]
    assert [values_of(s).get("model") for s in (node, of_front, of_rear)] == ["smart", None, None]
    clock.now_s += 3.5
    _, of_front, of_rear = diagnostic_statuses(STATE, [camera(front, "front"), camera(rear, "rear")])
    assert of_front.level == DiagnosticStatus.OK
    assert of_rear.level == DiagnosticStatus.ERROR
    assert of_rear.message == "no image on /image or /image/compressed for 5.5 s"


def test_a_fault_of_the_node_is_in_its_own_status_where_there_are_several_cameras(statistics: Statistics) -> None:
    state = replace(STATE, lifecycle="unconfigured", failure="there is no bundle")
    statuses = diagnostic_statuses(state, [camera(statistics, "front"), camera(statistics, "rear")])
    assert [(s.level, s.message) for s in statuses] == [
        (DiagnosticStatus.ERROR, "there is no bundle"),
        (DiagnosticStatus.OK, "unconfigured"),
        (DiagnosticStatus.OK, "unconfigured"),
    ]


def test_all_is_well_while_captions_flow_whatever_they_say(statistics: Statistics) -> None:
    statistics.count_received()
    count_answer(statistics, Caption.STATUS_LOW_CONFIDENCE)
    count_answer(statistics, Caption.STATUS_NOTHING_FOUND)
    (status,) = diagnostic_statuses(STATE, [camera(statistics)])
    assert (status.name, status.hardware_id) == ("caption_node: captions", "left")
    assert (status.level, status.message[:10]) == (DiagnosticStatus.OK, "captioning")


def test_two_detectors_of_one_image_are_a_warning(statistics: Statistics) -> None:
    statistics.count_received()
    statistics.count_detections(left_out=0, replaces=True)
    count_evidence(statistics, ObjectOrigin.SAME_STAMP, coverage=1.0)
    level, message, _ = report(statistics)
    assert level == DiagnosticStatus.WARN
    assert message.startswith("1 detections of the last 5 s replaced others with the same stamp and frame")


def test_no_images_for_too_long_is_an_error(statistics: Statistics, clock: Clock) -> None:
    statistics.count_received()
    clock.now_s += 4.9
    assert report(statistics)[0] == DiagnosticStatus.OK
    clock.now_s += 0.2
    level, message, _ = report(statistics)
    assert level == DiagnosticStatus.ERROR
    assert message == "no image on /image or /image/compressed for 5.1 s"


@pytest.mark.parametrize(("lost", "level"), [(1, DiagnosticStatus.WARN), (0, DiagnosticStatus.OK)])
def test_images_that_are_lost_on_the_way_are_a_warning_with_what_to_do(
    statistics: Statistics, lost: int, level: bytes
) -> None:
    statistics.count_received(lost=3)
    for _ in range(20):
        statistics.count_received(lost=lost)
    found, message, _ = report(statistics)
    assert found == level
    if lost:
        assert message.startswith("23 of the last 44 images were lost on the way to this process: start the")
        assert "FASTRTPS_DEFAULT_PROFILES_FILE=" in message


def test_the_wait_for_images_counts_from_activation(statistics: Statistics, clock: Clock) -> None:
    clock.now_s += 60
    statistics.restart_windows()
    clock.now_s += 1
    assert report(statistics)[0] == DiagnosticStatus.OK


def test_an_error_shows_until_the_window_has_passed(statistics: Statistics, clock: Clock) -> None:
    count_answer(statistics, Caption.STATUS_ERROR, "unknown encoding")
    count_answer(statistics)
    level, message, _ = report(statistics)
    assert level == DiagnosticStatus.ERROR
    assert message == "1 of the last 2 images could not be captioned: unknown encoding"
    clock.now_s += WINDOW_S + 0.1
    statistics.count_received()
    level, _, values = report(statistics)
    assert level == DiagnosticStatus.OK
    assert values["last error"] == "unknown encoding", "what went wrong last stays readable"


def test_ages_are_percentiles_of_a_minute_and_are_empty_without_answers(statistics: Statistics, clock: Clock) -> None:
    assert report(statistics)[2]["age p99 (ms)"] == ""
    for age_ms in range(1, 101):
        statistics.count_answer(Caption.STATUS_OK, "", latency_s=age_ms / 1e3, work_s=0.0)
    values = report(statistics)[2]
    assert [values[f"age p{percent} (ms)"] for percent in (50, 95, 99)] == ["50.5", "95.0", "99.0"]
    clock.now_s += 59.0
    assert report(statistics)[2]["age p50 (ms)"] == "50.5"
    clock.now_s += 2.0
    assert report(statistics)[2]["age p50 (ms)"] == ""
    count_answer(statistics)
    statistics.restart_windows()
    assert report(statistics)[2]["age p50 (ms)"] == "", "the time before an activation does not count"


def test_an_engine_that_another_one_stands_in_for_is_a_warning_with_the_reason(statistics: Statistics) -> None:
    statistics.count_received()
    state = replace(STATE, engine_fallbacks=("not tensorrt: the engine has not been built", "not cuda: no memory"))
    level, message, values = report(statistics, state)
    reasons = "not tensorrt: the engine has not been built; not cuda: no memory"
    assert (level, message) == (DiagnosticStatus.WARN, f"captions come from fast one: {reasons}")
    assert values["engine fall-backs"] == reasons


@pytest.mark.parametrize("lifecycle", ["active", "unconfigured"])
def test_two_nodes_of_one_name_are_a_warning(statistics: Statistics, lifecycle: str) -> None:
    level, message, _ = report(statistics, replace(STATE, nodes_of_this_name=2, lifecycle=lifecycle))
    assert level == DiagnosticStatus.WARN
    assert message.startswith("2 nodes have the name /caption_node, and share topics, services and parameters")


def test_an_image_that_is_in_work_for_too_long_is_an_error_in_every_state(statistics: Statistics) -> None:
    for lifecycle in ("active", "inactive"):
        state = replace(STATE, lifecycle=lifecycle, in_work_s=34.0)
        level, message, values = report(statistics, state)
        assert (level, message) == (DiagnosticStatus.ERROR, "an image has been in work for 34.0 s")
        assert values["image in work for (s)"] == "34.0"


def test_a_simulated_clock_that_is_missing_is_a_warning(statistics: Statistics) -> None:
    statistics.count_received()
    level, message, _ = report(statistics, replace(STATE, lacks_clock=True))
    assert (level, message) == (
        DiagnosticStatus.WARN,
        "use_sim_time is set, and nothing arrives on /clock: images have no age",
    )


def test_stale_images_are_a_warning(statistics: Statistics) -> None:
    statistics.count_received()
    count_answer(statistics, Caption.STATUS_STALE, "the image is 2 s old")
    level, message, _ = report(statistics)
    assert level == DiagnosticStatus.WARN
    assert "the image is 2 s old" in message


def test_detections_that_do_not_fit_are_a_warning_with_the_reason_until_the_window_has_passed(
    statistics: Statistics, clock: Clock
) -> None:
    statistics.count_received()
    count_evidence(statistics, ObjectOrigin.SAME_STAMP, coverage=1.0)
    count_evidence(statistics, ObjectOrigin.NONE, missing_reason="the nearest detections are 2.000 s away")
    level, message, _ = report(statistics)
    assert level == DiagnosticStatus.WARN
    assert (
        message == "1 of the last 2 captions have no objects: the nearest detections are 2.000 s away; "
        "0 detections arrived in the last 5 s"
    )
    clock.now_s += WINDOW_S + 0.1
    statistics.count_received()
    assert report(statistics)[0] == DiagnosticStatus.OK


def test_a_detector_that_the_own_one_stands_in_for_is_a_warning(statistics: Statistics) -> None:
    statistics.count_received()
    for _ in range(3):
        statistics.count_detections(left_out=0, replaces=False)
    count_evidence(statistics, ObjectOrigin.DETECTOR, missing_reason="the nearest detections are 0.700 s away")
    assert report(statistics)[:2] == (
        DiagnosticStatus.WARN,
        "1 of the last 1 captions have no detections, and objects of the node's own detector instead: the nearest "
        "detections are 0.700 s away; 3 detections arrived in the last 5 s",
    )


def test_what_keeps_images_and_detections_away_is_said(statistics: Statistics, clock: Clock) -> None:
    statistics.count_received()
    (status,) = diagnostic_statuses(STATE, [camera(statistics, detection_problem="/detections has another type")])
    assert (status.level, status.message) == (DiagnosticStatus.WARN, "/detections has another type")
    clock.now_s += 6
    (status,) = diagnostic_statuses(STATE, [camera(statistics, problem="/image has messages of another type")])
    assert status.level == DiagnosticStatus.ERROR
    assert status.message.endswith("for 6.0 s: /image has messages of another type")


def test_captions_without_detections_are_no_fault_where_nobody_publishes_any(statistics: Statistics) -> None:
    statistics.count_received()
    evidence = Evidence(shade_caption(9, 64, 48), ObjectOrigin.NONE, missing_reason="there are no detections")
    statistics.count_evidence(evidence, detections_expected=False)
    assert report(statistics)[0] == DiagnosticStatus.OK


def test_coverage_that_fails_or_could_not_be_loaded_is_a_warning(statistics: Statistics) -> None:
    statistics.count_received()
    count_evidence(statistics, ObjectOrigin.DETECTOR, coverage_error="coverage failed: on fire")
    assert report(statistics)[:2] == (
        DiagnosticStatus.WARN,
        "1 of the last 1 captions have no coverage: coverage failed: on fire",
    )
    state = replace(STATE, coverage_problem="captions come without nouns: no spaCy")
    assert report(Statistics(), state)[:2] == (DiagnosticStatus.WARN, "captions come without nouns: no spaCy")


@pytest.mark.parametrize("lifecycle", ["unconfigured", "inactive"])
def test_a_node_that_is_not_active_is_no_fault(statistics: Statistics, clock: Clock, lifecycle: str) -> None:
    clock.now_s += 60
    assert report(statistics, replace(STATE, lifecycle=lifecycle))[:2] == (DiagnosticStatus.OK, lifecycle)


def test_an_engine_that_failed_to_load_is_an_error(statistics: Statistics) -> None:
    state = replace(STATE, lifecycle="unconfigured", failure="there is no bundle")
    assert report(statistics, state)[:2] == (DiagnosticStatus.ERROR, "there is no bundle")


def test_switched_off_is_said_and_is_no_fault(statistics: Statistics) -> None:
    statistics.count_received()
    level, message, values = report(statistics, replace(STATE, enabled=False))
    assert (level, message, values["captioning"]) == (DiagnosticStatus.OK, "captioning is switched off", "off")
