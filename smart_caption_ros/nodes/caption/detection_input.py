"""Subscription to the detections topic, with the message type that is published there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from smart_caption_ros.caption_messages import stamp_ns
from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.detection.candidates import MAX_OBJECTS
from smart_caption_ros.msg import DetectedObjectArray
from smart_caption_ros.nodes.caption.detection_buffer import Detections
from smart_caption_ros.nodes.caption.detection_messages import objects_of_array, objects_of_vision

try:
    from vision_msgs.msg import Detection2DArray
except ImportError:  # not part of the ROS 2 core; DetectedObjectArray takes its place
    Detection2DArray = None

AUTO = "auto"
OWN_TYPE = "smart_caption_ros/DetectedObjectArray"
VISION_TYPE = "vision_msgs/Detection2DArray"
DETECTION_TYPES = (AUTO, VISION_TYPE, OWN_TYPE)
MAX_READ = 10_000
"""Objects of a message that are read; the others are left out, so that no message keeps the node busy for long."""
_INSTALL = "install ros-jazzy-vision-msgs"


class DetectionInput:
    """Subscribes to the detections topic with the type that is published there."""

    def __init__(self, node: Node, topic: str, on_detections: Callable[[Detections, int], None]) -> None:
        """Create the input without a subscription.

        Args:
            node: the node.
            topic: the topic.
            on_detections: called with each message and the number of its elements that are not usable as objects.
        """
        self._node = node
        self.topic: str = node.resolve_topic_name(topic)
        self._on_detections = on_detections
        self._subscription: Subscription | None = None
        self._type = VISION_TYPE if Detection2DArray is not None else OWN_TYPE
        self._class_names: Sequence[str] = ()

    @property
    def type(self) -> str:
        """Message type of the subscription, or of the next one."""
        return self._type

    @property
    def has_publisher(self) -> bool:
        """Whether this input is subscribed and the topic has a publisher."""
        return self._subscription is not None and self._node.count_publishers(self.topic) > 0

    def open(self, chosen_type: str, class_names: Sequence[str]) -> None:
        """Subscribe, or subscribe again where the type of the topic has changed.

        Args:
            chosen_type: one of :data:`DETECTION_TYPES`. "auto" is the type that is published; without a publisher,
                vision_msgs' type where that package is installed.
            class_names: names of the numeric class ids.
        """
        self._class_names = class_names
        wanted = self._wanted_type(chosen_type)
        if self._subscription is not None:
            if wanted == self._type:
                return
            self.close()
        self._type = wanted
        readers = {
            VISION_TYPE: (Detection2DArray, objects_of_vision, "detections"),
            OWN_TYPE: (DetectedObjectArray, objects_of_array, "objects"),
        }
        message_class, read, field = readers[wanted]
        self._subscription = self._node.create_subscription(
            message_class,
            self.topic,
            lambda message: self._deliver(message, read, len(getattr(message, field))),
            QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT),
            # A group of its own, because an event that arrives during the destruction blocks its group for ever.
            callback_group=MutuallyExclusiveCallbackGroup(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def close(self) -> None:
        """Unsubscribe."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _wanted_type(self, chosen: str) -> str:
        if chosen != AUTO:
            return chosen
        published = {info.topic_type for info in self._node.get_publishers_info_by_topic(self.topic)}
        offered = [name for name in (VISION_TYPE, OWN_TYPE) if name.replace("/", "/msg/") in published]
        if Detection2DArray is None and VISION_TYPE in offered:
            offered.remove(VISION_TYPE)
            self._node.get_logger().warning(
                f"{self.topic} has detections as {VISION_TYPE}, which cannot be read: {_INSTALL}", once=True
            )
        return offered[0] if offered else self._type  # no publisher now: the last type is the likeliest

    def _deliver(
        self, message: Any, read: Callable[[Any, Sequence[str]], Iterable[DetectedObject | None]], number: int
    ) -> None:
        if self._subscription is None:  # closed while this message was on its way
            return
        usable = sorted(filter(None, islice(read(message, self._class_names), MAX_READ)), key=lambda item: -item.score)
        detections = Detections(stamp_ns(message.header), message.header.frame_id, tuple(usable[:MAX_OBJECTS]))
        self._on_detections(detections, number - len(usable))


def check_type_is_installed(chosen_type: str) -> None:
    """Check that the package of a message type is installed.

    Raises:
        ValueError: it is not; one sentence.
    """
    if chosen_type == VISION_TYPE and Detection2DArray is None:
        raise ValueError(
            f"detection_type is {VISION_TYPE}, but vision_msgs is not installed: {_INSTALL}, or publish {OWN_TYPE}"
        )
