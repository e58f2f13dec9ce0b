"""Cameras that share an engine take turns, and none waits for what another one lacks."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image
from smart_caption_ros.msg import Caption

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.nodes.caption.camera import MAX_UNFINISHED, Camera
from smart_caption_ros.nodes.caption.detection_buffer import Detections
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.records import Answer, ReceivedImage
from smart_caption_ros.nodes.caption.statistics import Count
from smart_caption_ros.nodes.caption.worker import Worker
from smart_caption_ros.nodes.parameters import Parameters
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields
from tests.nodes.waiting import wait_for

pytestmark = pytest.mark.needs_ros


class Recorder:
    """Takes the place of the publishers of a camera."""

    overlay_is_watched = False

    def __init__(self) -> None:
        self.messages: list[Caption] = []

    def publish(self, answer: Answer) -> None:
        self.messages.append(answer.message)

    def publish_overlay(self, answer: Answer) -> None: ...

    def wait_until_idle(self) -> None: ...

    def forget_text(self) -> None: ...

    def close(self) -> None: ...


class GatedCaptioner(FakeCaptioner):
    """Captions one image at each call of :meth:`go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[int] = []
        self._gate = threading.Semaphore(0)
        self._is_open = False

    def caption(self, image_bgr: Any) -> Any:
        self.begun.append(round(float(image_bgr.mean())))
        if not self._is_open:
            self._gate.acquire()
        return super().caption(image_bgr)

    def go_on(self) -> None:
        """Finish the image in work and wait for the next one."""
        count = len(self.begun)
        self._gate.release()
        wait_for(lambda: len(self.begun) > count, "next image")

    def open(self) -> None:
        """Caption all images from now on."""
        self._is_open = True
        self._gate.release()


class Shared:
    """Two cameras and the worker that they share."""

    def __init__(self, node: LifecycleNode) -> None:
        self._node = node
        parameters = Parameters(node, CAPTION_NODE_PARAMETERS)
        self.captioner = GatedCaptioner()
        self.worker = Worker(node, parameters)
        self.front, self.rear = (Camera(node, name, parameters, self.worker.request_turn) for name in ("front", "rear"))
        self.cameras = (self.front, self.rear)
        self.recorders = {camera: Recorder() for camera in self.cameras}
        for camera, recorder in self.recorders.items():
            camera.outputs = recorder  # type: ignore[assignment]
        self.worker.load(lambda: Model(self.captioner, FakeCoverage()))  # type: ignore[arg-type]

    def set(self, **values: Any) -> None:
        self._node.set_parameters([Parameter(name, value=value) for name, value in values.items()])

    def put(self, camera: Camera, shade: int, stamp_s: int = 0) -> None:
        image = Image(**image_fields(shade))
        image.header.stamp.sec = stamp_s
        camera.receive(image)

    def close(self) -> None:
        self.captioner.open()
        self.worker.close(10)
        for camera in self.cameras:
            camera.detections.close()
            camera.close(10)

    def texts(self, camera: Camera) -> list[str]:
        return [message.text for message in self.recorders[camera].messages]

    def wait_until_idle(self) -> None:
        wait_for(
            lambda: not any(camera.statistics.summary().in_progress for camera in self.cameras), "count of every image"
        )


@pytest.fixture
def shared(node: LifecycleNode) -> Iterator[Shared]:
    made = Shared(node)
    yield made
    made.close()


def test_a_fast_camera_does_not_starve_a_slow_one(shared: Shared) -> None:
    shared.put(shared.front, 1)
    wait_for(lambda: shared.captioner.begun == [1])
    for shade in range(2, 12):
        shared.put(shared.front, shade)
    shared.put(shared.rear, 100)
    for shade in range(12, 22):
        shared.put(shared.front, shade)
    shared.captioner.go_on()
    shared.put(shared.front, 50)
    shared.captioner.go_on()
    shared.captioner.go_on()
    assert shared.captioner.begun == [1, 21, 100, 50], "one image of another camera at most comes before it"
    shared.captioner.open()
    shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 1", "shade 21", "shade 50"]
    assert shared.texts(shared.rear) == ["shade 100"]
    for camera in shared.cameras:
        assert {message.camera for message in shared.recorders[camera].messages} == {camera.name}
    assert [message.timing.dropped_frames for message in shared.recorders[shared.front].messages] == [0, 19, 0]


def test_a_camera_that_waits_for_its_detections_does_not_hold_up_another_one(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    monkeypatch.setattr(type(shared.front.detection_input), "has_publisher", property(lambda given: given is waiting))
    waiting = shared.front.detection_input
    shared.captioner.open()
    for number in range(1, MAX_UNFINISHED + 1):
        shared.put(shared.front, 10, stamp_s=number)
        wait_for(lambda: len(shared.captioner.begun) == number)  # noqa: B023 -- asked at once
    for number in range(100, 103):
        shared.put(shared.front, number, stamp_s=number)
    shared.put(shared.rear, 20, stamp_s=1)
    wait_for(lambda: shared.texts(shared.rear) == ["shade 20"], "caption of the other camera")
    assert not shared.texts(shared.front)
    shared.front.detections.add(Detections(200 * 10**9, "", ()))
    shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 10"] * MAX_UNFINISHED + ["shade 102"], "then the newest one"


def test_on_change_a_scene_is_captioned_once_and_every_image_is_counted(shared: Shared) -> None:
    shared.set(trigger="change")
    shared.captioner.open()
    for shade in (100, 101, 99, 150, 152, 148, 66, 66, 100):  # the engine fails on 66
        shared.put(shared.front, shade)
        shared.wait_until_idle()
    assert [text for text in shared.texts(shared.front) if text] == ["shade 100", "shade 150", "shade 100"]
    summary = shared.front.statistics.summary()
    assert (summary.counts[Count.UNCHANGED], summary.answers[Caption.STATUS_ERROR]) == (4, 2), (
        "what failed is tried again"
    )
    shared.put(shared.rear, 100)
    shared.wait_until_idle()
    assert shared.texts(shared.rear) == ["shade 100"], "each camera has its own scene"
    shared.front.forget()
    shared.put(shared.front, 100)
    shared.wait_until_idle()
    assert shared.front.statistics.summary().answers[Caption.STATUS_OK] == 4


def test_the_last_image_captioned_is_the_reference_so_that_slow_changes_add_up(shared: Shared) -> None:
    shared.set(trigger="change")
    shared.captioner.open()
    for shade in range(100, 131, 3):
        shared.put(shared.front, shade)
        shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 100", "shade 112", "shade 124"]


def test_images_dropped_before_an_unchanged_one_are_reported_with_the_next_caption(shared: Shared) -> None:
    shared.set(trigger="change")
    shared.put(shared.front, 100)
    wait_for(lambda: shared.captioner.begun == [100])
    for _ in range(3):
        shared.put(shared.front, 100)
    shared.captioner.open()
    shared.wait_until_idle()
    shared.put(shared.front, 200)
    shared.wait_until_idle()
    drops = [message.timing.dropped_frames for message in shared.recorders[shared.front].messages]
    assert drops == [0, 2]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("image"), st.integers(0, 1), st.sampled_from([0, 50, 66, 100, 101, 200])),
            st.tuples(st.just("trigger"), st.sampled_from(["always", "change"])),
            st.tuples(st.just("discard"), st.integers(0, 1)),
        ),
        max_size=30,
    )
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_image_is_answered_dropped_passed_over_or_unchanged(shared: Shared, steps: list[tuple[Any, ...]]) -> None:
    shared.captioner.open()
    for kind, *what in steps:
        if kind == "image":
            shared.put(shared.cameras[what[0]], what[1])
        elif kind == "trigger":
            shared.set(trigger=what[0])
        else:
            shared.cameras[what[0]].discard_waiting()
    shared.wait_until_idle()
    for camera in shared.cameras:
        assert sum(camera.statistics.summary().answers.values()) == len(shared.recorders[camera].messages)


def test_answers_that_wait_for_detections_do_not_keep_their_images(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    monkeypatch.setattr(type(shared.front.detection_input), "has_publisher", True)
    shared.captioner.open()
    image = Image(**image_fields(10))
    image.header.stamp.sec = 1
    kept = weakref.ref(image.data)
    shared.front.receive(image)
    del image
    wait_for(lambda: shared.captioner.begun, "work of the engine")
    shared.put(shared.front, 20, stamp_s=2)  # the newest one is kept for ~/describe_latest
    wait_for(lambda: kept() is None, "end of the pixels")
    assert not shared.texts(shared.front)
    shared.front.detections.close()


def test_after_a_jump_of_the_clock_the_detections_of_the_future_are_forgotten(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a bag that is played again: its first images wait for the detections of the second time."""
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    monkeypatch.setattr(type(shared.front.detection_input), "has_publisher", True)
    shared.captioner.open()
    for second in range(1, 6):
        shared.front.detections.add(Detections(second * 10**9, "", ()))
        shared.put(shared.front, 10, stamp_s=second)
        shared.wait_until_idle()
    shared.put(shared.front, 20, stamp_s=1)
    time.sleep(0.3)
    assert len(shared.texts(shared.front)) == 5, "it waits"
    cup = DetectedObject("cup", -1, 0.5, (0.0, 0.0, 9.0, 9.0))
    shared.front.detections.add(Detections(10**9, "", (cup,)))
    shared.wait_until_idle()
    message = shared.recorders[shared.front].messages[-1]
    assert (message.text, [item.class_name for item in message.objects]) == ("shade 20", ["cup"])


def test_the_image_of_a_request_is_captioned_whatever_its_age_and_not_published(shared: Shared) -> None:
    shared.captioner.open()
    image = Image(**image_fields(30))
    image.header.stamp.sec = 1
    received = ReceivedImage(image, time.monotonic())
    answer = shared.worker.describe(shared.front, received, max_age_s=0.0).result(20)
    shared.front.complete(answer)
    assert (answer.message.text, answer.message.camera) == ("shade 30", "front")
    assert shared.worker.describe(shared.front, received, max_age_s=1.0).result(20).status == Caption.STATUS_STALE
    assert not any(shared.recorders[camera].messages for camera in shared.cameras)


def test_the_objects_of_the_topic_guide_the_words_where_the_model_says_so(shared: Shared) -> None:
    class Guided(GatedCaptioner):
        def caption(self, image_bgr: Any, objects: Any = "not given") -> Any:
            given.append(objects)
            return super().caption(image_bgr)

    given: list[Any] = []
    captioner = Guided()
    captioner.open()
    shade = DetectedObject("shade", 3, 0.75, (0.0, 5.0, 40.0, 90.0))
    shared.front.detections.add(Detections(10**9, "", (shade,)))
    image = Image(**image_fields(30))
    image.header.stamp.sec = 1
    for guided in (False, True):
        shared.worker.load(lambda: Model(captioner, None, guided_by_topic=guided))  # type: ignore[arg-type]  # noqa: B023
        for camera in shared.cameras:
            shared.worker.describe(camera, ReceivedImage(image, 0.0), max_age_s=0.0).result(20)
    assert given == ["not given", "not given", (shade,), None]


def test_a_thread_that_is_stuck_outside_of_the_work_on_an_image_is_a_problem(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.captioner.open()
    timeout_s = 0.2
    go_on = threading.Event()
    assert not shared.worker.problem(timeout_s)
    monkeypatch.setattr(shared.front, "take", lambda: go_on.wait(20) and None)
    shared.put(shared.front, 1)
    wait_for(lambda: shared.worker.problem(timeout_s) == "the thread that captions is stuck")
    go_on.set()
    wait_for(lambda: not shared.worker.problem(10.0))


def test_loading_that_takes_long_is_no_problem(shared: Shared) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def load() -> Model:
        begun.set()
        go_on.wait(20)
        return Model(shared.captioner, FakeCoverage())  # type: ignore[arg-type]

    loading = threading.Thread(target=lambda: shared.worker.load(load))
    loading.start()
    begun.wait(20)
    timeout_s = 0.01
    for _ in range(10):
        assert not shared.worker.problem(timeout_s)
        time.sleep(2 * timeout_s)
    go_on.set()
    loading.join()


def test_closing_the_inputs_waits_for_the_detections_of_no_answer(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    monkeypatch.setattr(type(shared.front.detection_input), "has_publisher", True)
    shared.captioner.open()
    for number in range(1, MAX_UNFINISHED + 1):
        shared.put(shared.front, 10, stamp_s=number)
        wait_for(lambda: len(shared.captioner.begun) == number)  # noqa: B023 -- asked at once
    started_s = time.monotonic()
    shared.front.close_inputs()
    shared.worker.wait_until_idle()
    shared.front.wait_until_idle()
    assert time.monotonic() - started_s < 5, "not ten seconds for each"
    assert len(shared.texts(shared.front)) == MAX_UNFINISHED
