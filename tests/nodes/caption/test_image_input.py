"""The subscription to the images: what it says of itself, and that it comes back."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from smart_caption_ros.nodes.caption.image_input import ImageInput
from smart_caption_ros.nodes.demo.processes import free_domain_id
from tests.nodes.fake_captioner import image_fields
from tests.nodes.waiting import wait_for

pytestmark = pytest.mark.needs_ros


def test_images_that_do_not_arrive_are_counted_and_none_arrives_after_closing(node: Node) -> None:
    images: list[Any] = []
    lost: list[int] = []
    given = ImageInput(node, "image", images.append, lost.append)
    given.open("raw")
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    publisher = node.create_publisher(Image, "image", QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE))
    wait_for(publisher.get_subscription_count)

    def receive(number: int) -> None:
        wait_for(lambda: executor.spin_once(timeout_sec=0.1) or len(images) == number)

    publisher.publish(Image(**image_fields(1)))
    receive(1)
    assert not lost
    for shade in (2, 3, 4):  # of which the middleware keeps the newest
        publisher.publish(Image(**image_fields(shade)))
    publisher.publish(b"\0\1\0\0 these are not the fields of an image")
    for _ in range(5):
        executor.spin_once(timeout_sec=0.1)
    publisher.publish(Image(**image_fields(5)))
    wait_for(lambda: executor.spin_once(timeout_sec=0.1) or images[-1].data[0] == 5)
    assert sum(lost) + len(images) == 6
    given.close()
    publisher.publish(Image(**image_fields(6)))
    executor.spin_once(timeout_sec=0.2)
    assert images[-1].data[0] == 5


def test_after_the_last_publisher_both_topics_are_awaited(node: Node) -> None:
    given = ImageInput(node, "image", lambda image: None, lambda lost: None)
    given.open("auto")
    assert given.image_topics == "/image or /image/compressed"
    publisher = node.create_publisher(CompressedImage, "image/compressed", 10)
    given.open("auto")
    assert given.topic == given.image_topics == "/image/compressed"
    node.destroy_publisher(publisher)
    given.open("auto")
    assert given.image_topics == "/image or /image/compressed"
    given.open("raw")
    assert given.image_topics == "/image"
    given.close()


def test_why_no_image_arrives_is_known(node: Node, stranger: Node) -> None:
    given = ImageInput(node, "image", lambda image: None, lambda lost: None)
    given.open("auto")
    assert not given.problem
    stranger.create_publisher(String, "image", 1)
    wait_for(lambda: given.problem == "/image has messages of the type std_msgs/msg/String")
    node.create_publisher(CompressedImage, "image/compressed", 1)
    wait_for(lambda: node.count_publishers("image/compressed"))
    given.open("auto")
    assert given.topic == "/image/compressed", "whatever else is on the other topic"
    assert not given.problem
    given.close()


def test_names_are_remapped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    rclpy.init(args=["--ros-args", "-r", "image:=/a", "-r", "/a:=/b"], context=context, domain_id=free_domain_id())
    node = Node("remapped", context=context)
    given = ImageInput(node, "image", lambda image: None, lambda lost: None)
    for transport, topic in (("raw", "/a"), ("compressed", "/a/compressed")):
        given.open(transport)
        assert given.topic == topic
        wait_for(lambda: node.count_subscribers(topic) == 1)  # noqa: B023 -- asked at once
    assert not node.count_subscribers("/b")
    context.try_shutdown()


def test_a_quality_of_service_that_does_not_match_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    context = Context()
    reliable = ["--ros-args", "-p", "qos_overrides./image.subscription.reliability:=reliable"]
    rclpy.init(args=reliable, context=context, domain_id=free_domain_id())
    node = Node("reliable", context=context)
    given = ImageInput(node, "image", lambda image: None, lambda lost: None)
    given.open("raw")
    node.create_publisher(Image, "image", QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))
    wait_for(lambda: "its quality of service does not match that of the subscription" in given.problem)
    context.try_shutdown()
