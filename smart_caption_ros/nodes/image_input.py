"""Where the caption node's images come from: the raw topic or the compressed one."""

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
from smart_caption_ros.nodes.image_reader import ReadElsewhere, Reader
from smart_caption_ros.nodes.serialised_image import read_image


class ImageInput:
    """One subscription, to `<topic>` or to `<topic>/compressed`."""

    def __init__(
        self,
        node: Node,
        topic: str,
        on_image: Callable[[ImageMessage], None],
        on_lost: Callable[[int], None],
    ) -> None:
        """Subscribes to nothing yet.

        Args:
            node: the node.
            topic: the raw topic; resolved first, so that the compressed one follows a remap of it.
            on_image: called with every image, in a thread of its own.
            on_lost: called with the number of images that the middleware knows to have lost.
        """
        self._node = node
        self._raw_topic: str = node.resolve_topic_name(topic)
        self._on_image = on_image
        self._on_lost = on_lost
        self._subscription: Subscription | None = None
        self._reader: Reader | None = None
        self._kind: type[Image | CompressedImage] = Image

    @property
    def topic(self) -> str:
        """The topic that images come from, or would, with its namespace."""
        return str(self._subscription.topic_name) if self._subscription else self._raw_topic

    def open(self, transport: str) -> None:
        """Subscribes, or subscribes anew where `transport` now means the other topic.

        Args:
            transport: "raw", "compressed", or "auto": raw unless only the compressed topic has a publisher.
        """
        kind = self._wanted(transport)
        if self._subscription is not None:
            if kind is self._kind:
                return
            self.close()
        self._kind = kind
        self._subscription = self._node.create_subscription(
            kind,
            self._raw_topic if kind is Image else self._compressed_topic,
            self._deliver_serialised if kind is Image else self._on_image,
            # Best effort matches any publisher, and whatever waits behind the newest image is out of date.
            QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT),
            callback_group=ReadElsewhere(),
            event_callbacks=SubscriptionEventCallbacks(message_lost=self._count_lost),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            raw=kind is Image,
        )
        self._reader = Reader(self._node, self._subscription, self._log)

    def close(self) -> None:
        """Unsubscribes; no image is delivered after this returns."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    @property
    def _compressed_topic(self) -> str:
        return f"{self._raw_topic}/compressed"

    def _wanted(self, transport: str) -> type[Image | CompressedImage]:
        if transport != "auto":
            return CompressedImage if transport == "compressed" else Image
        if self._node.count_publishers(self._raw_topic):
            return Image
        if self._node.count_publishers(self._compressed_topic):
            return CompressedImage
        return self._kind  # nobody publishes now: the one that did may come back

    def _deliver_serialised(self, serialised: bytes) -> None:
        self._on_image(read_image(serialised))

    def _log(self, error: Exception) -> None:
        self._node.get_logger().error(f"an image on {self.topic} is lost: {error}", throttle_duration_sec=1.0)

    def _count_lost(self, event: Any) -> None:
        self._on_lost(event.total_count_change)
