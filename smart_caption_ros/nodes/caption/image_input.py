"""Subscription to the images of a camera, raw or compressed.

The images come through rclpy's executor. A thread that takes serialised messages from a wait set of its own, and parses
them in place, was tried: at 1080p and 30 Hz it saved 0.9 ms of processor time an image (2.6 instead of 3.5 ms; a
caption takes 65 ms), 0.7 ms of latency and 45 MB, on two cores of an AMD EPYC, 2026-11-25. Without
:func:`smart_caption_ros.nodes.allocator.keep_freed_memory` an image costs 13 to 17 ms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSCompatibility, QoSProfile, ReliabilityPolicy, qos_check_compatible
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.nodes.caption.records import ImageMessage
from smart_caption_ros.nodes.ros_versions import SubscriptionEventCallbacks, with_publication_number

_TYPES = {Image: "sensor_msgs/msg/Image", CompressedImage: "sensor_msgs/msg/CompressedImage"}


class ImageInput:
    """Subscribes to `<topic>` or to `<topic>/compressed`, never to both."""

    def __init__(
        self, node: Node, topic: str, on_image: Callable[[ImageMessage], None], on_lost: Callable[[int], None]
    ) -> None:
        """Create the input without a subscription.

        Args:
            node: the node.
            topic: the raw topic; the compressed topic is derived from its name after remapping.
            on_image: called with every image, on a thread of the executor.
            on_lost: called with the number of images that were published before this one and did not arrive. ROS 2
                Humble and some middlewares do not number the messages; then it is not called.
        """
        self._node = node
        self._name = topic  # as it was given: rclpy remaps every name that it gets
        self._raw_topic: str = node.resolve_topic_name(topic)
        self._on_image = on_image
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._subscription: Subscription | None = None
        self._message_class: type[Image | CompressedImage] = Image
        self._transport = ""
        self._last_number: int | None = None

    @property
    def topic(self) -> str:
        """Full name of the topic of the subscription; of the raw topic where there is none."""
        subscription = self._subscription
        return str(subscription.topic_name) if subscription else self._raw_topic

    @property
    def image_topics(self) -> str:
        """The topic or topics on which an image may arrive, for a sentence that says that none does."""
        topics = (self._raw_topic, self._compressed_topic)
        if self._transport == "auto" and not any(map(self._node.count_publishers, topics)):
            return " or ".join(topics)
        return self.topic

    @property
    def problem(self) -> str:
        """Why no image can arrive although the topic has publishers; empty where no reason is known."""
        subscription = self._subscription
        if subscription is None:
            return ""
        is_raw = self._message_class is Image
        publishers = self._node.get_publishers_info_by_topic(self._name if is_raw else self._compressed_topic)
        if not publishers:
            return ""
        wanted = [publisher for publisher in publishers if publisher.topic_type == _TYPES[self._message_class]]
        if not wanted:
            types = ", ".join(sorted({publisher.topic_type for publisher in publishers}))
            return f"{subscription.topic_name} has messages of the type {types}"
        checks = [qos_check_compatible(publisher.qos_profile, subscription.qos_profile) for publisher in wanted]
        if all(compatibility == QoSCompatibility.ERROR for compatibility, _ in checks):
            return f"its quality of service does not match that of the subscription: {checks[0][1]}"
        return ""

    def open(self, transport: str) -> None:
        """Subscribe, or subscribe again where `transport` now selects the other topic.

        Args:
            transport: "raw", "compressed", or "auto": raw unless only the compressed topic has a publisher.
        """
        self._transport = transport
        wanted = self._wanted_class(transport)
        if self._subscription is not None:
            if wanted is self._message_class:
                return
            self.close()
        self._message_class, self._last_number = wanted, None
        self._subscription = self._node.create_subscription(
            wanted,
            self._name if wanted is Image else self._compressed_topic,
            with_publication_number(self._receive),
            # Best effort matches every publisher; depth 1 because an image behind the newest one is out of date.
            QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT),
            callback_group=MutuallyExclusiveCallbackGroup(),
            # An image wakes an executor that waits for events of its subscription again and again until it is taken.
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def close(self) -> None:
        """Unsubscribe; no image is delivered after this returns."""
        with self._lock:
            subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self._node.destroy_subscription(subscription)

    @property
    def _compressed_topic(self) -> str:
        return f"{self._raw_topic}/compressed"

    def _wanted_class(self, transport: str) -> type[Image | CompressedImage]:
        if transport != "auto":
            return CompressedImage if transport == "compressed" else Image
        for message_class, name in ((Image, self._name), (CompressedImage, self._compressed_topic)):
            publishers = self._node.get_publishers_info_by_topic(name)
            if any(publisher.topic_type == _TYPES[message_class] for publisher in publishers):
                return message_class
        return self._message_class  # no publisher now: the last topic is the likeliest

    def _receive(self, message: ImageMessage, number: int | None) -> None:
        with self._lock:
            if self._subscription is None:  # closed while this image was on its way
                return
            missing = number - self._last_number - 1 if number and self._last_number else 0
            self._last_number = number
            # Each publisher has numbers of its own.
            if missing > 0 and self._node.count_publishers(self._subscription.topic_name) == 1:
                self._on_lost(missing)
            self._on_image(message)
