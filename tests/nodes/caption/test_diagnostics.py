"""Counts add up, rates are those of the last seconds, and level and message show problems."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from smart_caption_ros.grounding.named_objects import Grounding
from smart_caption_ros.nodes.caption.diagnostics import NodeState, diagnostic_statuses
from smart_caption_ros.nodes.caption.evidence import Evidence, ObjectOrigin
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.statistics import WINDOW_S, Count, Statistics
from smart_caption_ros.record import CaptionStatus
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, shade_caption


def model_with(**changes):
    captioner = FakeCaptioner(Path("/bundles/smart"))
    captioner.model, captioner.engine, captioner.engine_choice = "smart", "fast one", "fast one, as asked for"
    captioner.engine_fallbacks = changes.pop("engine_fallbacks", ())
    return Model(captioner, FakeCoverage(), **changes)


STATE = NodeState(
    name="caption_node",
    lifecycle="active",
    enabled=True,
    failure="",
    in_work_s=0.0,
    lacks_clock=False,
    model=model_with(),
    nodes_of_this_name=1,
    memory_mb=417.25,
    requests_answered=3,
    requests_refused=84,
)


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def statistics(clock):
    return Statistics(clock)


def count_answer(statistics, status=CaptionStatus.OK, message=""):
    statistics.count_answer(status, message, latency_s=0.2, work_s=0.1)


def count_evidence(statistics, origin, *, coverage=None, missing_reason="", coverage_error=""):
    grounding = Grounding((), coverage, None, (), (), (), time_s=0.003) if coverage is not None else None
    statistics.count_evidence(Evidence(shade_caption(9, 64, 48), origin, grounding, missing_reason, coverage_error))


class FakeCamera:
    def __init__(self, statistics, name="left", problem="", detection_problem="", *, is_resting=False):
        self.name = name
        self.is_resting = is_resting
        self.image_input = SimpleNamespace(topic="/image", image_topics="/image or /image/compressed", problem=problem)
        self.detection_input = SimpleNamespace(problem=detection_problem)
        self.publisher = SimpleNamespace(statistics=statistics)

    def object_sources(self, model):
        return "/detections"


def report(statistics, state=STATE, **fields):
    (status,) = diagnostic_statuses(state, [FakeCamera(statistics, **fields)])
    return status.level, status.message, values_of(status)


def values_of(status):
    return {value.key: value.value for value in status.values}


def test_the_numbers_add_up(statistics, clock):
    for place in range(10):
        clock.now_s += 0.5
        statistics.count_received(lost=4 * (place == 0))
    for _ in range(2):
        statistics.count(Count.DROPPED)
        statistics.count_detections(left_out=2, replaces=True)
    statistics.count(Count.PASSED_OVER)
    statistics.count(Count.UNCHANGED)
    for status in (CaptionStatus.OK, CaptionStatus.OK, CaptionStatus.LOW_CONFIDENCE, CaptionStatus.STALE):
        count_answer(statistics, status)
    count_answer(statistics, CaptionStatus.ERROR, "broken")
    statistics.count_answer(CaptionStatus.NOTHING_FOUND, "", latency_s=0.8, work_s=0.4)
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
        "resting": "no",
        "times at rest": "0",
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


def test_several_cameras_have_a_status_each_beside_that_of_the_node(clock):
    front, rear = Statistics(clock), Statistics(clock)
    clock.now_s += 2.0
    rear.count_received()
    clock.now_s += 2.0
    for _ in range(8):
        front.count_received()
        count_answer(front)
    statuses = diagnostic_statuses(STATE, [FakeCamera(front, "front"), FakeCamera(rear, "rear")])
    rates = [status.message.removeprefix("captioning, ") for status in statuses]
    assert rates == ["2.0 images a second", "2.0 images a second", "0.0 images a second"]
    clock.now_s += 3.5
    _, of_front, of_rear = diagnostic_statuses(STATE, [FakeCamera(front, "front"), FakeCamera(rear, "rear")])
    assert of_front.level == DiagnosticStatus.OK
    assert of_rear.level == DiagnosticStatus.ERROR
    assert of_rear.message == "no image on /image or /image/compressed for 5.5 s"
    failed = replace(STATE, lifecycle="unconfigured", failure="there is no bundle")
    statuses = diagnostic_statuses(failed, [FakeCamera(front, "front"), FakeCamera(rear, "rear")])
    assert [s.level for s in statuses] == [DiagnosticStatus.ERROR, DiagnosticStatus.OK, DiagnosticStatus.OK]


WARN, ERROR, OK = DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.OK


@pytest.mark.parametrize(
    ("changes", "level", "message"),
    [
        ({}, OK, "captioning, 0.0 images a second"),
        ({"lifecycle": "unconfigured"}, OK, "unconfigured"),
        ({"enabled": False}, OK, "captioning is switched off"),
        ({"lifecycle": "unconfigured", "failure": "there is no bundle"}, ERROR, "there is no bundle"),
        ({"in_work_s": 34.0}, ERROR, "an image has been in work for 34.0 s"),
        ({"nodes_of_this_name": 2}, WARN, "2 nodes have the name /caption_node, and share topics"),
        (
            {"model": model_with(engine_fallbacks=["not cuda: no memory"])},
            WARN,
            "captions come from fast one: not cuda: no memory",
        ),
        ({"lacks_clock": True}, WARN, "use_sim_time is set, and nothing arrives on /clock: images have no age"),
        ({"model": model_with(coverage_problem="no spaCy")}, WARN, "no spaCy"),
    ],
)
def test_the_state_of_the_node_has_its_level_and_sentence(statistics, changes, level, message):
    statistics.count_received()
    found = report(statistics, replace(STATE, **changes))
    assert (found[0], found[1][: len(message)]) == (level, message)


def answer_with(status, reason=""):
    return lambda statistics: count_answer(statistics, status, reason)


def evidence_with(origin, **given):
    return lambda statistics: count_evidence(statistics, origin, **given)


def lose(statistics):
    for _ in range(9):
        statistics.count_received(lost=1)


@pytest.mark.parametrize(
    ("events", "level", "message"),
    [
        ([answer_with(CaptionStatus.LOW_CONFIDENCE), answer_with(CaptionStatus.NOTHING_FOUND)], OK, "captioning"),
        (
            [answer_with(CaptionStatus.ERROR, "unknown encoding"), answer_with(CaptionStatus.OK)],
            ERROR,
            "1 of the last 2 images could not be captioned: unknown encoding",
        ),
        ([answer_with(CaptionStatus.STALE, "2 s old")], WARN, "1 of the last 1 images were too old: 2 s old"),
        ([lose], WARN, "9 of the last 19 images were lost on the way to this process: start the camera's process with"),
        ([lambda statistics: statistics.count_received(lost=1)], OK, "captioning"),
        (
            [lambda statistics: statistics.count_detections(left_out=0, replaces=True)],
            WARN,
            "1 detections of the last 5 s replaced others with the same stamp and frame",
        ),
        (
            [
                evidence_with(ObjectOrigin.SAME_STAMP, coverage=1.0),
                evidence_with(ObjectOrigin.NONE, missing_reason="the nearest detections are 2.000 s away"),
            ],
            WARN,
            "1 of the last 2 captions have no objects: the nearest detections are 2.000 s away; "
            "0 detections arrived in the last 5 s",
        ),
        (
            [
                *[lambda statistics: statistics.count_detections(left_out=0, replaces=False)] * 3,
                evidence_with(ObjectOrigin.DETECTOR, missing_reason="0.700 s away"),
            ],
            WARN,
            "1 of the last 1 captions have no detections, and objects of the node's own detector instead: "
            "0.700 s away; 3 detections arrived in the last 5 s",
        ),
        (
            [evidence_with(ObjectOrigin.DETECTOR, coverage_error="coverage failed: on fire")],
            WARN,
            "1 of the last 1 captions have no coverage: coverage failed: on fire",
        ),
    ],
)
def test_what_happened_in_the_last_seconds_has_its_level_and_sentence(statistics, clock, events, level, message):
    statistics.count_received()
    for event in events:
        event(statistics)
    found = report(statistics)
    assert (found[0], found[1][: len(message)]) == (level, message)
    clock.now_s += WINDOW_S + 0.1
    statistics.count_received()
    later = report(statistics)
    assert later[0] == OK, "until the window has passed"
    assert later[2]["last error"] == ("unknown encoding" if level == ERROR else "")


def test_no_images_for_too_long_is_an_error_with_the_reason_counted_from_activation(statistics, clock):
    clock.now_s += 60
    statistics.restart_windows()
    clock.now_s += 4.9
    assert report(statistics)[0] == OK
    clock.now_s += 0.2
    assert report(statistics)[:2] == (ERROR, "no image on /image or /image/compressed for 5.1 s")
    (status,) = diagnostic_statuses(STATE, [FakeCamera(statistics, problem="/image has another type")])
    assert status.message.endswith("for 5.1 s: /image has another type")
    statistics.count_received()
    (status,) = diagnostic_statuses(STATE, [FakeCamera(statistics, detection_problem="/detections has another type")])
    assert (status.level, status.message) == (WARN, "/detections has another type")
    assert (status.name, status.hardware_id) == ("caption_node: captions", "left")


def test_a_camera_that_rests_lacks_no_images(statistics, clock):
    clock.now_s += 60
    level, message, values = report(statistics, is_resting=True)
    assert (level, message) == (OK, "resting, because nobody subscribes to the captions")
    assert values["resting"] == "yes"
