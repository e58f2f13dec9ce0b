"""Subscription to the caption node's images, raw or compressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.nodes.answering import ImageMessage
from smart_caption_ros.nodes.node_statistics import Statistics
from smart_caption_ros.nodes.ros_versions import SubscriptionEventCallbacks
from smart_caption_ros.nodes.serialised_image import parse_image
from smart_caption_ros.nodes.subscription_reader import ExecutorBypassGroup, SubscriptionReader
from smart_caption_ros.text import shortened

_STUCK_AFTER_S = 5.0
_LOG_PERIOD_S = 5.0


class ImageInput:
    """Subscribes to `<topic>` or to `<topic>/compressed`, never to both."""

    def __init__(
        self,
        node: Node,
        topic: str,
        on_image: Callable[[ImageMessage], None],
        statistics: Statistics,
    ) -> None:
        """Create the input without a subscription.

        Args:
            node: the node.
            topic: the raw topic; the compressed topic is derived from its name after remapping.
            on_image: called with every image, on a thread of the input.
            statistics: counts what does not become an image: messages that the middleware reports as lost, messages
                that cannot be decoded, and errors of the receiving thread.
        """
        self._node = node
        self._raw_topic: str = node.resolve_topic_name(topic)
        self._on_image = on_image
        self._statistics = statistics
        self._subscription: Subscription | None = None
        self._reader: SubscriptionReader | None = None
        self._message_class: type[Image | CompressedImage] = Image
        self._transport = ""

    @property
    def topic(self) -> str:
        """Full name of the topic of the subscription; of the raw topic where there is none."""
        return str(self._subscription.topic_name) if self._subscription else self._raw_topic

    @property
    def awaited(self) -> str:
        """The topic or topics on which an image may arrive, for a sentence that says that none does."""
        topics = (self._raw_topic, self._compressed_topic)
        if self._transport == "auto" and not any(map(self._node.count_publishers, topics)):
            return " or ".join(topics)
        return self.topic

    @property
    def problem(self) -> str:
        """What is wrong with the receiving thread; empty where nothing is."""
        reader = self._reader
        if reader is None:
            return ""
        if not reader.is_alive:
            return "the thread that receives images has ended"
        if reader.silent_s > _STUCK_AFTER_S:
            return f"the thread that receives images has been stuck for {reader.silent_s:.0f} s"
        return ""

    def open(self, transport: str) -> None:
        """Subscribe, or subscribe again where `transport` now selects the other topic, or where the thread has ended.

        Args:
            transport: "raw", "compressed", or "auto": raw unless only the compressed topic has a publisher.
        """
        self._transport = transport
        wanted = self._wanted_class(transport)
        if self._subscription is not None:
            if wanted is self._message_class and self._reader is not None and self._reader.is_alive:
                return
            self.close()
        self._message_class = wanted
        self._subscription = self._node.create_subscription(
            wanted,
            self._raw_topic if wanted is Image else self._compressed_topic,
            self._deliver,
            # Best effort matches every publisher; depth 1 because an image behind the newest one is out of date.
            QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT),
            callback_group=ExecutorBypassGroup(),
            event_callbacks=SubscriptionEventCallbacks(message_lost=self._count_lost),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            raw=True,  # so that a message that cannot be decoded is counted; rclpy passes over it in silence
        )
        self._reader = SubscriptionReader(self._node, self._subscription, self._report_error)

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

    def _deliver(self, serialised: bytes) -> None:
        try:
            image: ImageMessage = (
                parse_image(serialised)
                if self._message_class is Image
                else deserialize_message(serialised, CompressedImage)
            )
        except Exception as error:  # RMWError, ValueError, or whatever else the bytes of a stranger cause
            reason = f"a message on {self.topic} is not an image: {shortened(str(error))}"
            self._statistics.count_undecodable(reason)
            self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
        else:
            self._on_image(image)

    def _report_error(self, error: Exception) -> None:
        reason = f"receiving an image on {self.topic} failed: {type(error).__name__}: {shortened(str(error))}"
        self._statistics.count_reader_error(reason)
        self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)

    def _count_lost(self, event: Any) -> None:
        self._statistics.count_lost(event.total_count_change)
