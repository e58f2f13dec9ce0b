"""Subscription to the images of a camera, raw or compressed."""

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, QoSProfile, ReliabilityPolicy, qos_check_compatible
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.nodes.caption.records import ImageMessage
from smart_caption_ros.nodes.ros_versions import SubscriptionEventCallbacks, with_message_info

_TYPES = {Image: "sensor_msgs/msg/Image", CompressedImage: "sensor_msgs/msg/CompressedImage"}
_COMPRESSED = "/compressed"


class ImageInput:
    """Subscribes to `<topic>` or to `<topic>/compressed`, never to both.

    Raw images are taken if both are published. If the topic is remapped to a name that ends in `/compressed`, only
    compressed images are taken.
    """

    def __init__(self, node: Node, topic: str, on_image: Callable[[ImageMessage, Mapping[str, Any]], None]) -> None:
        """
        Args:
            topic: the raw topic; the compressed topic is derived from its name after remapping.
            on_image: called on a thread of the executor with every image and the middleware's information on it.
        """
        self._node = node
        resolved: str = node.resolve_topic_name(topic)
        self._is_compressed_alone = resolved.endswith(_COMPRESSED)
        # The unremapped name: rclpy applies remappings when it subscribes.
        self._names = {Image: topic, CompressedImage: topic if self._is_compressed_alone else resolved + _COMPRESSED}
        self._on_image = on_image
        self._subscription: Subscription | None = None
        self._message_class: type[Image | CompressedImage] = CompressedImage if self._is_compressed_alone else Image

    @property
    def topic(self) -> str:
        """Full name of the topic of the present or next subscription."""
        return str(self._node.resolve_topic_name(self._names[self._message_class]))

    @property
    def image_topics(self) -> str:
        """Topic or topics on which images may arrive, for a sentence that says that none has arrived."""
        topics = [str(self._node.resolve_topic_name(name)) for name in self._names.values()]
        return (
            self.topic
            if self._is_compressed_alone or any(map(self._node.count_publishers, topics))
            else " or ".join(topics)
        )

    @property
    def problem(self) -> str:
        """Why no image can arrive although the topic has publishers; empty if no reason is known."""
        subscription = self._subscription
        if subscription is None:
            return ""
        publishers = self._node.get_publishers_info_by_topic(self._names[self._message_class])
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

    @property
    def has_one_publisher(self) -> bool:
        """Whether all images come from one publisher; each publisher numbers its own messages."""
        return int(self._node.count_publishers(self.topic)) == 1

    def open(self) -> bool:
        """Subscribe, or subscribe again if only the other topic has a publisher now; return whether it subscribed."""
        wanted = self._wanted_class()
        if self._subscription is not None:
            if wanted is self._message_class:
                return False
            self.close()
        self._message_class = wanted
        self._subscription = self._node.create_subscription(
            wanted,
            self._names[wanted],
            with_message_info(self._on_image),
            # Best effort matches every publisher. Depth 1, because only the newest image is of use.
            QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
            callback_group=MutuallyExclusiveCallbackGroup(),
            # An untaken message keeps waking an executor that waits for the events of its subscription.
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        return True

    def close(self) -> None:
        """Unsubscribe; an image that was received before may still be delivered."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self._node.destroy_subscription(subscription)

    def _wanted_class(self) -> type[Image | CompressedImage]:
        if self._is_compressed_alone:
            return CompressedImage
        for message_class, name in self._names.items():
            publishers = self._node.get_publishers_info_by_topic(name)
            if any(publisher.topic_type == _TYPES[message_class] for publisher in publishers):
                return message_class
        return self._message_class  # without a publisher, the last topic is the most likely one
