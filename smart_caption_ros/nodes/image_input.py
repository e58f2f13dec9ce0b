"""Subscription to the caption node's images, raw or compressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.nodes.answering import ImageMessage
from smart_caption_ros.nodes.serialised_image import parse_image
from smart_caption_ros.nodes.subscription_reader import ExecutorBypassGroup, SubscriptionReader


class ImageInput:
    """Subscribes to `<topic>` or to `<topic>/compressed`, never to both."""

    def __init__(
        self,
        node: Node,
        topic: str,
        on_image: Callable[[ImageMessage], None],
        on_lost: Callable[[int], None],
    ) -> None:
        """Create the input without a subscription.

        Args:
            node: the node.
            topic: the raw topic; the compressed topic is derived from its name after remapping.
            on_image: called with every image, on a thread of the input.
            on_lost: called with the number of images that the middleware reports as lost.
        """
        self._node = node
        self._raw_topic: str = node.resolve_topic_name(topic)
        self._on_image = on_image
        self._on_lost = on_lost
        self._subscription: Subscription | None = None
        self._reader: SubscriptionReader | None = None
        self._message_class: type[Image | CompressedImage] = Image

    @property
    def topic(self) -> str:
        """Full name of the topic of the subscription; of the raw topic where there is none."""
        return str(self._subscription.topic_name) if self._subscription else self._raw_topic

    def open(self, transport: str) -> None:
        """Subscribe, or subscribe again where `transport` now selects the other topic.

        Args:
            transport: "raw", "compressed", or "auto": raw unless only the compressed topic has a publisher.
        """
        wanted = self._wanted_class(transport)
        if self._subscription is not None:
            if wanted is self._message_class:
                return
            self.close()
        self._message_class = wanted
        self._subscription = self._node.create_subscription(
            wanted,
            self._raw_topic if wanted is Image else self._compressed_topic,
            self._deliver_serialised if wanted is Image else self._on_image,
            # Best effort matches every publisher; depth 1 because an image behind the newest one is out of date.
            QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT),
            callback_group=ExecutorBypassGroup(),
            event_callbacks=SubscriptionEventCallbacks(message_lost=self._count_lost),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            raw=wanted is Image,
        )
        self._reader = SubscriptionReader(self._node, self._subscription, self._log_error)

    def close(self) -> None:
        """Unsubscribe; no image is delivered after this returns."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    @property
    def _compressed_topic(self) -> str:
        return f"{self._raw_topic}/compressed"

    def _wanted_class(self, transport: str) -> type[Image | CompressedImage]:
        if transport != "auto":
            return CompressedImage if transport == "compressed" else Image
        if self._node.count_publishers(self._raw_topic):
            return Image
        if self._node.count_publishers(self._compressed_topic):
            return CompressedImage
        return self._message_class  # no publisher now: the last topic is the likeliest

    def _deliver_serialised(self, serialised: bytes) -> None:
        self._on_image(parse_image(serialised))

    def _log_error(self, error: Exception) -> None:
        self._node.get_logger().error(f"an image on {self.topic} is lost: {error}", throttle_duration_sec=1.0)

    def _count_lost(self, event: Any) -> None:
        self._on_lost(event.total_count_change)
