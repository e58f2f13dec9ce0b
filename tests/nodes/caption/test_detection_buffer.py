"""An image gets the detections of its own stamp, else the nearest; memory and waiting have an end."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.nodes.caption.detection_buffer import CAPACITY, DetectionBuffer, Detections

stamps = st.integers(1, 10**6)
frames = st.sampled_from(["", "left", "right"])


def buffer_of(*entries):
    """A buffer whose detections each have one object, of the class "frame stamp"."""
    buffer = DetectionBuffer()
    for stamp_ns, frame_id in entries:
        buffer.add(detections(stamp_ns, frame_id))
    return buffer


def detections(stamp_ns, frame_id=""):
    return Detections(stamp_ns, frame_id, (DetectedObject(f"{frame_id} {stamp_ns}", -1, 0.5, (0.0, 0.0, 1.0, 1.0)),))


def found(buffer, stamp_ns, frame_id="", slop_s=60.0):
    objects = buffer.find(stamp_ns, frame_id, slop_s).objects
    return objects[0].class_name if objects is not None else None


@given(st.lists(st.tuples(stamps, frames), max_size=2 * CAPACITY), stamps, frames)
def test_the_nearest_of_the_same_camera_among_the_newest_is_found(entries, stamp_ns, frame_id):
    name = found(buffer_of(*entries), stamp_ns, frame_id)
    candidates = [stamp for stamp, frame in entries[-CAPACITY:] if "" in (frame, frame_id) or frame == frame_id]
    if not candidates:
        assert name is None
    else:
        nearest = int(name.rpartition(" ")[2])
        assert abs(nearest - stamp_ns) == min(abs(stamp - stamp_ns) for stamp in candidates)


def waited_s(buffer, timeout_s, stamp_ns=5):
    started_s = time.monotonic()
    buffer.wait(stamp_ns, "", started_s + timeout_s)
    return time.monotonic() - started_s


@pytest.mark.parametrize(("stamp_ns", "timeout_s"), [(5, 3600), (0, 3600), (7, 0.05)])
def test_nobody_waits_for_a_detector_that_has_passed_the_image_or_for_longer_than_the_limit(stamp_ns, timeout_s):
    assert waited_s(buffer_of((4, ""), (6, "")), timeout_s, stamp_ns) < 50
