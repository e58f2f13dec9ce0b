"""An image gets the detections of its own stamp, else the nearest; memory has an end."""

from __future__ import annotations

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.nodes.caption.detection_buffer import CAPACITY, DetectionBuffer, Detections

stamps = st.integers(1, 10**6)
frames = st.sampled_from(["", "left", "right"])


def buffer_of(*entries: tuple[int, str]) -> DetectionBuffer:
    buffer = DetectionBuffer()
    for stamp_ns, frame_id in entries:
        buffer.add(Detections(stamp_ns, frame_id, ()))
    return buffer


@given(st.lists(st.tuples(stamps, frames), max_size=2 * CAPACITY), stamps, frames)
def test_the_nearest_of_the_same_camera_among_the_newest_is_found(
    entries: list[tuple[int, str]], stamp_ns: int, frame_id: str
) -> None:
    found = buffer_of(*entries).nearest(stamp_ns, frame_id)
    candidates = [stamp for stamp, frame in entries[-CAPACITY:] if "" in (frame, frame_id) or frame == frame_id]
    if not candidates:
        assert found is None
    else:
        assert found is not None
        assert abs(found.stamp_ns - stamp_ns) == min(abs(stamp - stamp_ns) for stamp in candidates)


def test_what_came_last_replaces_what_came_before_with_the_same_stamp() -> None:
    buffer = DetectionBuffer()
    first, second = Detections(5, "left", ()), Detections(5, "", ())
    buffer.add(first)
    buffer.add(second)
    assert buffer.nearest(5, "left") is second


def test_another_camera_is_never_taken() -> None:
    assert buffer_of((5, "right")).nearest(5, "left") is None
    assert buffer_of((5, "right")).nearest(5, "") is not None, "an image without a frame may be of any camera"


def test_a_closed_buffer_has_nothing() -> None:
    buffer = buffer_of((5, ""))
    buffer.close()
    assert buffer.nearest(5, "") is None


def test_a_detector_that_is_behind_is_waited_for() -> None:
    buffer = buffer_of((4, ""))
    late = Detections(5, "", ())
    timer = threading.Timer(0.1, buffer.add, [late])
    timer.start()
    assert buffer.nearest(5, "", until_s=time.monotonic() + 60) is late
    timer.join()


def test_nobody_waits_for_a_detector_that_has_passed_the_image() -> None:
    found = buffer_of((4, ""), (6, "")).nearest(5, "", until_s=time.monotonic() + 3600)
    assert found is not None


def test_the_wait_has_an_end() -> None:
    found = buffer_of((4, "")).nearest(5, "", until_s=time.monotonic() + 0.05)
    assert found is not None
    assert found.stamp_ns == 4


def test_nobody_waits_while_the_buffer_is_closed() -> None:
    buffer = buffer_of((4, ""))
    timer = threading.Timer(0.1, buffer.close)
    timer.start()
    assert buffer.nearest(5, "", until_s=time.monotonic() + 3600) is None
    timer.join()
    assert buffer.nearest(5, "", until_s=time.monotonic() + 3600) is None, "nor does the next one"
    buffer.open()
    late = Detections(5, "", ())
    threading.Timer(0.1, buffer.add, [late]).start()
    assert buffer.nearest(5, "", until_s=time.monotonic() + 60) is late


def test_after_a_jump_of_the_clock_the_detections_of_the_image_are_kept_or_waited_for() -> None:
    buffer = buffer_of((4, ""), (9, ""), (3, ""))
    buffer.restart(3)
    assert buffer.nearest(9, "") == Detections(3, "", ()), "a detector may publish before the camera"
    late = Detections(5, "", ())
    threading.Timer(0.1, buffer.add, [late]).start()
    assert buffer.nearest(5, "", until_s=time.monotonic() + 60) is late


def test_a_message_of_the_same_stamp_and_frame_replaces_another_one() -> None:
    buffer = buffer_of((5, "left"))
    assert not buffer.add(Detections(5, "right", ()))
    assert not buffer.add(Detections(6, "left", ()))
    assert buffer.add(Detections(5, "left", ()))
