"""The subscription to the images: what it says of itself, and that it comes back."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.nodes.image_input import ImageInput
from smart_caption_ros.nodes.node_statistics import Statistics
from tests.nodes.waiting import wait_for

pytestmark = pytest.mark.needs_ros


def test_a_receiving_thread_that_ended_is_reported_and_started_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    images: list[Any] = []
    statistics = Statistics()
    given = ImageInput(node, "image", images.append, statistics)
    assert not given.problem

    def refuse(*sizes: Any) -> Any:
        raise InvalidHandle

    with monkeypatch.context() as broken:
        broken.setattr(rclpy_implementation, "WaitSet", refuse)
        given.open("raw")
        wait_for(lambda: given.problem == "the thread that receives images has ended")
    given.open("raw")
    assert not given.problem
    publisher = node.create_publisher(Image, "image", 10)
    wait_for(publisher.get_subscription_count)
    publisher.publish(Image())
    wait_for(lambda: images)
    given.close()


def test_after_the_last_publisher_both_topics_are_awaited(node: Node) -> None:
    given = ImageInput(node, "image", lambda image: None, Statistics())
    given.open("auto")
    assert given.awaited == "/image or /image/compressed"
    publisher = node.create_publisher(CompressedImage, "image/compressed", 10)
    given.open("auto")
    assert given.topic == given.awaited == "/image/compressed"
    node.destroy_publisher(publisher)
    given.open("auto")
    assert given.awaited == "/image or /image/compressed"
    given.open("raw")
    assert given.awaited == "/image"
    given.close()
