"""The detections topic is subscribed to with a type whose package is installed."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from smart_caption_ros.msg import BoundingBox, DetectedObject, DetectedObjectArray

from smart_caption_ros.nodes.caption import detection_input
from smart_caption_ros.nodes.caption.detection_buffer import Detections
from smart_caption_ros.nodes.caption.detection_input import (
    OWN_TYPE,
    VISION_TYPE,
    DetectionInput,
    check_type_is_installed,
)
from smart_caption_ros.nodes.demo.processes import free_domain_id

pytestmark = pytest.mark.needs_ros


def test_a_type_that_is_not_installed_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection_input, "Detection2DArray", None)
    with pytest.raises(ValueError, match="install ros-jazzy-vision-msgs, or publish smart_caption_ros/Detected"):
        check_type_is_installed(VISION_TYPE)


def test_a_message_with_too_many_objects_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection_input, "MAX_READ", 3)
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(context=context, domain_id=free_domain_id())
    node, received = Node("detections", context=context), list[tuple[Detections, int]]()
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    reader = DetectionInput(node, "detections", lambda detections, left_out: received.append((detections, left_out)))
    reader.open(OWN_TYPE, ())
    publisher = node.create_publisher(DetectedObjectArray, "detections", 1)
    box = BoundingBox(x2=1.0, y2=1.0)
    publisher.publish(DetectedObjectArray(objects=[DetectedObject(class_name="cup", score=0.5, box=box)] * 5))
    end_s = time.monotonic() + 30
    while not received and time.monotonic() < end_s:
        executor.spin_once(timeout_sec=0.1)
    context.try_shutdown()
    ((detections, left_out),) = received
    assert (len(detections.objects), left_out) == (3, 2)
