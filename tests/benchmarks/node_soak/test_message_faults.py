"""What no message may hold is found wherever it is in the message."""

import math

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from benchmarks.node_soak.user import faults_of
from smart_caption_ros import msg as messages

pytestmark = pytest.mark.needs_ros


def test_a_caption_of_finite_numbers_and_printable_text_has_no_faults():
    caption = messages.Caption(text="a cup on a table", score=-3.5, objects=[messages.DetectedObject(class_name="cup")])
    caption.calibrated_confidence = math.nan  # unknown
    caption.header.frame_id = "a camera's own\nname"
    assert list(faults_of(caption)) == []


def test_numbers_that_are_none_and_control_characters_are_found_in_parts():
    caption = messages.Caption(camera="left\x1b[2J", objects=[messages.DetectedObject(), messages.DetectedObject()])
    caption.objects[1].box.x2 = math.inf
    caption.coverage.noun_support = math.nan
    caption.coverage.missed_classes = ["cup", "bell\x07"]
    assert sorted(fault.split(" ")[0] for fault in faults_of(caption)) == [
        "camera", "coverage.missed_classes[1]", "coverage.noun_support", "objects[1].box.x2",
    ]  # fmt: skip
