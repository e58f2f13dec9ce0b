"""Images pass from camera to worker to publisher: cameras take turns, and none waits for another."""

import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.nodes.caption import worker as worker_module
from smart_caption_ros.nodes.caption.camera import Camera
from smart_caption_ros.nodes.caption.detection_buffer import Detections
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.publisher import Publisher
from smart_caption_ros.nodes.caption.statistics import Count
from smart_caption_ros.nodes.caption.worker import Worker
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.record import CaptionStatus
from tests.nodes.fake_captioner import FakeCaptioner, FakeCoverage, image_fields
from tests.nodes.waiting import wait_for

PACKAGE = Path(worker_module.__file__).parents[2]
CUP = DetectedObject("cup", -1, 0.5, (0.0, 0.0, 9.0, 9.0))
SECOND = 10**9
CONTAINERS = ("record.py", "records.py", "time_window.py", "text.py")
"""Files of data structures that the other files pass on."""


class GatedCaptioner(FakeCaptioner):
    """Captions one image at each call of :meth:`go_on`."""

    def __init__(self):
        super().__init__()
        self.begun = []
        self.guides = []
        self._gate = threading.Semaphore(0)
        self._is_open = False

    def caption(self, image_bgr, *guide):
        self.begun.append(round(float(image_bgr.mean())))
        self.guides.append(guide)
        if not self._is_open:
            self._gate.acquire()
        return super().caption(image_bgr)

    def go_on(self):
        """Finish the image in progress and wait for the next one."""
        count = len(self.begun)
        self._gate.release()
        wait_for(lambda: len(self.begun) > count, "next image")

    def open(self):
        self._is_open = True
        self._gate.release()


class Shared:
    """Two cameras and the worker that they share; what they publish is in `messages`."""

    def __init__(self, node, monkeypatch):
        self._node = node
        self._monkeypatch = monkeypatch
        parameters = Parameters(node, CAPTION_NODE_PARAMETERS)
        self.captioner = GatedCaptioner()
        self.worker = Worker(node, parameters)
        self.front, self.rear = self.cameras = tuple(
            Camera(node, name, parameters, self.worker) for name in ("front", "rear")
        )
        self.messages = {camera.publisher: [] for camera in self.cameras}
        monkeypatch.setattr(
            Publisher, "_publish", lambda publisher, record, message, own: self.messages[publisher].append(message)
        )
        self.load()

    def load(self, **fields):
        model = Model(self.captioner, FakeCoverage(), **fields)
        self.worker.load(lambda: model)
        for camera in self.cameras:
            camera.open_inputs(model)

    def set(self, **values):
        self._node.set_parameters([Parameter(name, value=value) for name, value in values.items()])

    def expect_detections(self, *cameras):
        inputs = [camera.detection_input for camera in cameras]
        has_publisher = property(lambda given: given in inputs)
        self._monkeypatch.setattr(type(self.front.detection_input), "has_publisher", has_publisher)

    def detect(self, camera, stamp_s, *objects):
        camera._receive_detections(Detections(stamp_s * SECOND, "", objects), 0)

    def put(self, camera, shade, stamp_s=0):
        image = Image(**image_fields(shade))
        image.header.stamp.sec = stamp_s
        camera.receive(image, {})

    def close(self):
        self.captioner.open()
        for camera in self.cameras:
            camera.close()
        self.worker.close(10)
        for camera in self.cameras:
            camera.publisher.close(10)

    def texts(self, camera):
        return [message.text for message in self.messages[camera.publisher]]

    def in_progress(self):
        """Return the number of received images that are in no other count, which wait or are in progress."""
        done = (Count.DROPPED, Count.PASSED_OVER, Count.UNCHANGED, *CaptionStatus)
        counts = [camera.publisher.statistics.summary().counts for camera in self.cameras]
        return sum(each[Count.RECEIVED] - sum(each[count] for count in done) for each in counts)

    def wait_until_idle(self):
        wait_for(lambda: self.in_progress() == 0, "count of every image")


@pytest.fixture
def shared(node, monkeypatch):
    made = Shared(node, monkeypatch)
    yield made
    made.close()


def test_one_image_passes_through_seven_files_in_one_direction(node, monkeypatch):
    """The files of the nodes and of the top folder are counted, and the calls from one to another."""
    calls = []

    def file_of(frame):
        path = Path(frame.f_code.co_filename) if frame is not None else Path()
        is_counted = PACKAGE in path.parents and (path.parent == PACKAGE or PACKAGE / "nodes" in path.parents)
        return path.name if is_counted and path.name not in CONTAINERS else ""

    def trace(frame, event, argument):
        if event == "call":
            calls.append((file_of(frame.f_back), file_of(frame)))

    threading.setprofile(trace)
    try:
        shared = Shared(node, monkeypatch)
        shared.set(max_age_s=0.0)
        shared.captioner.open()
        shared.worker.wait_until_idle()
        calls.clear()
        sys.setprofile(trace)
        shared.put(shared.front, 100, stamp_s=1)
        sys.setprofile(None)
        wait_for(lambda: shared.texts(shared.front), "caption")
        shared.wait_until_idle()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    between = [(caller, called) for caller, called in calls if caller and called and caller != called]
    order = ["camera.py", "worker.py", "publisher.py"]
    assert {name for call in between for name in call} >= set(order)
    assert len({name for call in between for name in call}) <= 7, between
    assert len(between) <= 12, "\n".join(map(str, between))
    ranks = [(order.index(caller), order.index(called)) for caller, called in between if {caller, called} <= {*order}]
    assert all(caller < called for caller, called in ranks), between
    shared.close()


def test_a_fast_camera_does_not_starve_a_slow_one(shared):
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
        assert {message.camera for message in shared.messages[camera.publisher]} == {camera.name}
    assert [message.timing.dropped_frames for message in shared.messages[shared.front.publisher]] == [0, 19, 0]


@pytest.mark.parametrize("guided", [False, True])
def test_a_camera_whose_detector_is_silent_does_not_hold_up_another_one(shared, guided):
    shared.set(detection_wait_s=3.0, max_age_s=0.0)
    shared.load(guided_by_topic=guided)
    shared.expect_detections(shared.front, shared.rear)
    shared.captioner.open()
    for number in range(1, 11):
        shared.put(shared.front, 10, stamp_s=number)
        shared.detect(shared.rear, number, CUP)
        shared.put(shared.rear, 20, stamp_s=number)
        wait_for(lambda: len(shared.texts(shared.rear)) == number, "caption of the other camera")  # noqa: B023
    assert len(shared.texts(shared.front)) <= 2, "ten captions take less than a wait, or two on a busy machine"
    shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 10"] * (2 if guided else 10), "the wait has an end"


def test_objects_that_guide_the_words_are_there_before_the_image_is_captioned(shared):
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    shared.load(guided_by_topic=True)
    shared.expect_detections(shared.front)
    shared.captioner.open()
    shared.put(shared.front, 10, stamp_s=1)
    wait_for(lambda: shared.front._held.is_empty)
    for number in (2, 3):
        shared.put(shared.front, 10 * number, stamp_s=number)
    time.sleep(0.2)
    assert not shared.captioner.begun
    shared.detect(shared.front, 1, CUP)
    wait_for(lambda: shared.texts(shared.front) == ["shade 10"])
    shared.detect(shared.front, 3)
    shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 10", "shade 30"]
    assert shared.captioner.guides == [((CUP,),), ((),)]
    assert shared.messages[shared.front.publisher][1].timing.dropped_frames == 1
    shared.put(shared.rear, 40, stamp_s=3)
    shared.wait_until_idle()
    assert shared.captioner.guides[-1] == (None,), "without a publisher nothing is waited for"


def test_an_image_that_waits_for_detections_is_passed_over_once_captions_are_off_or_the_node_stops(shared):
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    shared.load(guided_by_topic=True)
    shared.expect_detections(*shared.cameras)
    shared.captioner.open()
    for camera in shared.cameras:
        shared.put(camera, 10, stamp_s=1)
        wait_for(lambda: camera._held.is_empty)  # noqa: B023 -- asked at once
        shared.put(camera, 20, stamp_s=2)
    shared.front.is_enabled = False
    started_s = time.monotonic()
    for camera in shared.cameras:
        camera.close_inputs()
        assert camera.publisher.statistics.summary().counts[Count.PASSED_OVER] == 2
    assert time.monotonic() - started_s < 5
    shared.worker.wait_until_idle()
    assert not shared.captioner.begun
    shared.put(shared.front, 30)
    assert not shared.in_progress(), "no image is taken after the end"


def test_on_change_a_scene_is_captioned_once_and_every_image_is_counted(shared):
    shared.set(trigger="change")
    shared.captioner.open()
    for shade in (100, 101, 99, 150, 152, 148, 66, 66, 100):  # the engine fails on 66
        shared.put(shared.front, shade)
        shared.wait_until_idle()
    assert [text for text in shared.texts(shared.front) if text] == ["shade 100", "shade 150", "shade 100"]
    counts = shared.front.publisher.statistics.summary().counts
    assert (counts[Count.UNCHANGED], counts[CaptionStatus.ERROR]) == (4, 2), "what failed is tried again"
    shared.put(shared.rear, 100)
    shared.wait_until_idle()
    assert shared.texts(shared.rear) == ["shade 100"], "each camera has its own scene"
    shared.worker.forget()
    shared.put(shared.front, 100)
    shared.wait_until_idle()
    assert shared.front.publisher.statistics.summary().counts[CaptionStatus.OK] == 4


def test_on_request_no_image_is_captioned_as_it_comes_and_otherwise_the_rate_is_limited(shared):
    shared.captioner.open()
    shared.set(trigger="request")
    shared.put(shared.front, 40)
    shared.set(trigger="always", max_rate_hz=0.01)
    for shade in (50, 60):
        shared.put(shared.front, shade)
    shared.wait_until_idle()
    assert shared.texts(shared.front) == ["shade 50"]
    assert shared.front.publisher.statistics.summary().counts[Count.PASSED_OVER] == 2


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("image"), st.integers(0, 1), st.sampled_from([0, 50, 66, 100, 101, 200])),
            st.tuples(st.just("trigger"), st.sampled_from(["always", "change", "request"])),
            st.tuples(st.just("discard"), st.integers(0, 1)),
            st.tuples(st.just("enable"), st.integers(0, 1), st.booleans()),
        ),
        max_size=30,
    )
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_image_is_answered_dropped_passed_over_or_unchanged(shared, steps):
    shared.captioner.open()
    for kind, *what in steps:
        if kind == "image":
            shared.put(shared.cameras[what[0]], what[1])
        elif kind == "trigger":
            shared.set(trigger=what[0])
        elif kind == "enable":
            shared.cameras[what[0]].is_enabled = what[1]
        else:
            shared.cameras[what[0]].discard_waiting()
    shared.wait_until_idle()
    for camera in shared.cameras:
        counts = camera.publisher.statistics.summary().counts
        assert sum(counts[status] for status in CaptionStatus) == len(shared.texts(camera))


@pytest.mark.parametrize(("jump_s", "is_kept"), [(0.001, True), (0.5, True), (4.0, False)])
def test_only_a_jump_of_the_clock_empties_the_detections(shared, jump_s, is_kept):
    """A bag that is played again jumps; an image that comes out of order does not."""
    shared.set(max_age_s=0.0, detection_slop_s=0.0)
    shared.expect_detections(shared.front)
    shared.captioner.open()
    shared.detect(shared.front, 5, CUP)
    shared.put(shared.front, 10, stamp_s=5)
    image = Image(**image_fields(20))
    image.header.stamp.sec, image.header.stamp.nanosec = divmod(round((5 - jump_s) * SECOND), SECOND)
    shared.front.receive(image, {})
    shared.put(shared.front, 30, stamp_s=5)
    shared.wait_until_idle()
    last = shared.messages[shared.front.publisher][-1]
    assert [item.class_name for item in last.objects] == (["cup"] if is_kept else [])


def test_an_image_of_a_request_leaves_the_detections_of_the_camera_alone(shared):
    """A request may send an image of an old recording while the camera is live."""
    shared.set(max_age_s=0.0, detection_slop_s=0.0)
    shared.captioner.open()
    shared.put(shared.front, 10, stamp_s=4)
    shared.detect(shared.front, 5, CUP)
    recorded = Image(**image_fields(20))
    recorded.header.stamp.sec = 1
    assert shared.front.received_image(recorded).stamp_ns == SECOND
    shared.put(shared.front, 30, stamp_s=5)
    shared.wait_until_idle()
    assert [item.class_name for item in shared.messages[shared.front.publisher][-1].objects] == ["cup"]


def test_closing_the_inputs_ends_every_wait_for_detections(shared):
    shared.set(detection_wait_s=10.0, max_age_s=0.0)
    shared.expect_detections(shared.front)
    shared.captioner.open()
    for number in range(1, 9):
        shared.put(shared.front, 10, stamp_s=number)
        wait_for(lambda: len(shared.captioner.begun) == number)  # noqa: B023 -- asked at once
    started_s = time.monotonic()
    shared.front.close_inputs()
    shared.worker.wait_until_idle()
    shared.front.publisher.wait_until_idle()
    assert time.monotonic() - started_s < 5, "not ten seconds for each"
    assert len(shared.texts(shared.front)) == 8
