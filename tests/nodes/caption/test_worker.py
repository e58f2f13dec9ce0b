"""Cameras that share an engine take turns, and none waits for what another one lacks."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import Image
from smart_caption_ros.msg import Caption

from smart_caption_ros.nodes.answer_stage import MAX_UNFINISHED
from smart_caption_ros.nodes.answering import ImageAnswer
from smart_caption_ros.nodes.camera_stream import CameraStream, CameraTopics, ReceivedImage
from smart_caption_ros.nodes.caption_node_parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption_worker import CaptionWorker
from smart_caption_ros.nodes.detection_buffer import Detections
from smart_caption_ros.nodes.model_loading import LoadedModel
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields
from tests.nodes.waiting import wait_for

pytestmark = pytest.mark.needs_ros


class Recorder:
    """Takes the place of the publishers of a camera."""

    overlay_is_watched = False

    def __init__(self) -> None:
        self.messages: list[Caption] = []

    def publish(self, answer: ImageAnswer, *, text_on_change: bool) -> None:
        self.messages.append(answer.message)

    def publish_overlay(self, answer: ImageAnswer, **options: Any) -> None: ...

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
        self.values: dict[str, Any] = {spec.name: spec.default for spec in CAPTION_NODE_PARAMETERS}
        self.captioner = GatedCaptioner()
        self.front, self.rear = (
            CameraStream(node, name, CameraTopics(f"{name}/image", f"{name}/detections", f"{name}/caption"), ignore)
            for name in ("front", "rear")
        )
        requests = CameraStream(node, "", CameraTopics("image", "detections", "robot/caption"), ignore)
        self.cameras = (self.front, self.rear)
        self.worker = CaptionWorker(node, SimpleNamespace(values=self.values), self.cameras, requests)  # type: ignore[arg-type]
        self.recorders = {camera: Recorder() for camera in self.cameras}
        for camera, recorder in self.recorders.items():
            camera.outputs = recorder  # type: ignore[assignment]
        self.worker.load(lambda: LoadedModel(self.captioner, FakeCoverage(), "", ()))  # type: ignore[arg-type]

    def put(self, camera: CameraStream, shade: int, stamp_s: int = 0) -> None:
        image = Image(**image_fields(shade))
        image.header.stamp.sec = stamp_s
        camera.statistics.count_received()
        self.worker.put(camera, ReceivedImage(image, time.monotonic()))

    def texts(self, camera: CameraStream) -> list[str]:
        return [message.text for message in self.recorders[camera].messages]

    def wait_until_idle(self) -> None:
        wait_for(lambda: all(self.is_counted(camera) for camera in self.cameras), "count of every image")

    def is_counted(self, camera: CameraStream) -> bool:
        counts = camera.statistics.summary()
        return counts.received == sum(counts.answers.values()) + counts.dropped + counts.passed_over + counts.unchanged


def ignore(camera: CameraStream, image: ReceivedImage) -> None: ...


@pytest.fixture
def shared(node: LifecycleNode) -> Iterator[Shared]:
    made = Shared(node)
    yield made
    made.captioner.open()
    made.worker.close()


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


def test_cameras_that_always_have_an_image_alternate(shared: Shared) -> None:
    shared.put(shared.front, 10)
    wait_for(lambda: shared.captioner.begun)
    for _ in range(6):
        for _ in range(5):
            shared.put(shared.front, 10)
        shared.put(shared.rear, 20)
        shared.captioner.go_on()
    assert shared.captioner.begun == [10, 10, 20, 10, 20, 10, 20]


def test_a_camera_that_waits_for_its_detections_does_not_hold_up_another_one(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shared.values, "detection_wait_s", 10.0)
    monkeypatch.setitem(shared.values, "max_age_s", 0.0)
    monkeypatch.setattr(type(shared.front.detection_input), "has_publisher", property(lambda each: each is waiting))
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


def test_on_change_a_scene_is_captioned_once_and_every_image_is_counted(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shared.values, "trigger", "change")
    shared.captioner.open()
    for shade in (100, 101, 99, 150, 152, 148, 66, 66, 100):  # the engine fails on 66
        shared.put(shared.front, shade)
        shared.wait_until_idle()
    assert [text for text in shared.texts(shared.front) if text] == ["shade 100", "shade 150", "shade 100"]
    summary = shared.front.statistics.summary()
    assert (summary.unchanged, summary.answers[Caption.STATUS_ERROR]) == (4, 2), "what failed is tried again"
    shared.put(shared.rear, 100)
    shared.wait_until_idle()
    assert shared.texts(shared.rear) == ["shade 100"], "each camera has its own scene"
    shared.front.forget()
    shared.put(shared.front, 100)
    shared.wait_until_idle()
    assert shared.front.statistics.summary().answers[Caption.STATUS_OK] == 4


def test_the_last_image_captioned_is_the_reference_so_that_slow_changes_add_up(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shared.values, "trigger", "change")
    shared.captioner.open()
    for shade in range(100, 131, 3):
        shared.put(shared.front, shade)
        shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 100", "shade 112", "shade 124"]


def test_images_dropped_before_an_unchanged_one_are_reported_with_the_next_caption(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shared.values, "trigger", "change")
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
            shared.values["trigger"] = what[0]
        else:
            shared.cameras[what[0]].discard_waiting()
    shared.wait_until_idle()
    for camera in shared.cameras:
        assert sum(camera.statistics.summary().answers.values()) == len(shared.recorders[camera].messages)


def test_answers_that_wait_for_detections_do_not_keep_their_images(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shared.values, "detection_wait_s", 10.0)
    monkeypatch.setitem(shared.values, "max_age_s", 0.0)
    monkeypatch.setattr(type(shared.front.detection_input), "has_publisher", True)
    shared.captioner.open()
    image = Image(**image_fields(10))
    image.header.stamp.sec = 1
    kept = weakref.ref(image.data)
    shared.front.statistics.count_received()
    shared.worker.put(shared.front, ReceivedImage(image, time.monotonic()))
    del image
    wait_for(lambda: shared.captioner.begun, "work of the engine")
    wait_for(lambda: kept() is None, "end of the pixels")
    assert not shared.texts(shared.front)
    shared.front.detections.clear()


def test_the_image_of_a_request_is_of_no_camera(shared: Shared) -> None:
    shared.captioner.open()
    answer = shared.worker.describe_request(Image(**image_fields(30)))
    assert (answer.text, answer.camera) == ("shade 30", "")
    assert not any(shared.recorders[camera].messages for camera in shared.cameras)


def test_a_thread_that_is_stuck_outside_of_the_work_on_an_image_is_a_problem(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.captioner.open()
    timeout_s = 0.05
    go_on = threading.Event()

    def stuck(when_free: Any) -> bool:
        return go_on.wait(20)

    assert not shared.worker.problem(timeout_s)
    monkeypatch.setattr(shared.front.stage, "has_place", stuck)
    shared.put(shared.front, 1)
    wait_for(lambda: shared.worker.problem(timeout_s) == "the thread that captions is stuck")
    go_on.set()
    wait_for(lambda: not shared.worker.problem(10.0))
    shared.wait_until_idle()


def test_loading_that_takes_long_is_no_problem(shared: Shared) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def load() -> LoadedModel:
        begun.set()
        go_on.wait(20)
        return LoadedModel(shared.captioner, FakeCoverage(), "", ())  # type: ignore[arg-type]

    loading = threading.Thread(target=lambda: shared.worker.load(load))
    loading.start()
    begun.wait(20)
    timeout_s = 0.01
    for _ in range(10):
        assert not shared.worker.problem(timeout_s)
        time.sleep(2 * timeout_s)
    go_on.set()
    loading.join()
