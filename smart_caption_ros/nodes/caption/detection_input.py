"""Subscription to the detections topic, with the message type that is published on it."""

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from smart_caption_ros.caption_messages import stamp_ns
from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.detection.detections import MAX_OBJECTS
from smart_caption_ros.msg import DetectedObjectArray
from smart_caption_ros.nodes.caption.detection_buffer import Detections
from smart_caption_ros.nodes.caption.detection_messages import (
    class_names_of,
    objects_of_array,
    objects_of_vision,
    objects_of_yolo,
)

try:
    from vision_msgs.msg import Detection2DArray
except ImportError:  # not part of the ROS 2 core; DetectedObjectArray is used instead
    Detection2DArray = None
try:
    from vision_msgs.msg import LabelInfo
except ImportError:  # vision_msgs of Humble does not have this message
    LabelInfo = None
try:
    from yolo_msgs.msg import DetectionArray
except ImportError:
    DetectionArray = None

OWN_TYPE = "smart_caption_ros/DetectedObjectArray"
VISION_TYPE = "vision_msgs/Detection2DArray"
YOLO_TYPE = "yolo_msgs/DetectionArray"
TYPES = {VISION_TYPE: Detection2DArray, YOLO_TYPE: DetectionArray, OWN_TYPE: DetectedObjectArray}
"""Message class of each supported type, in the order of preference; None if its package is not installed."""
MAX_READ = 10_000
"""Maximum number of objects read from a message, so that no message keeps the node busy for long."""
_READERS = {
    VISION_TYPE: (objects_of_vision, "detections"),
    YOLO_TYPE: (objects_of_yolo, "detections"),
    OWN_TYPE: (objects_of_array, "objects"),
}
"""Reader of each type, and the name of the field that has the objects."""
_INSTALL = {
    VISION_TYPE: "install ros-$ROS_DISTRO-vision-msgs",
    YOLO_TYPE: "build yolo_msgs of yolo_ros in the workspace of this node",
}
_UNNAMED_PERIOD_S = 5.0
_LOG_PERIOD_S = 5.0


class DetectionInput:
    """Subscribes to the detections topic with the type that is published on it, and to the names of its class ids."""

    def __init__(self, node: Node, topic: str, on_detections: Callable[[Detections, int], None]) -> None:
        """Create the input without a subscription.

        Args:
            on_detections: called with each message and the number of its elements that cannot be used as objects.
        """
        self._node = node
        self._name = topic  # unremapped topic name; rclpy applies remappings when it subscribes
        self.topic: str = node.resolve_topic_name(topic)
        self._label_name = f"{self.topic.rpartition('/')[0]}/label_info"  # beside the topic after remapping
        self._on_detections = on_detections
        self._subscription: Subscription | None = None
        self._label_subscription: Subscription | None = None
        self.type = next(filter(TYPES.get, TYPES))
        """Message type of the present or next subscription."""
        self._class_names: Mapping[int, str] = {}
        self._unnamed: set[int] = set()
        self._unnamed_at_s = 0.0

    @property
    def has_publisher(self) -> bool:
        """Whether this input is subscribed and the topic has a publisher."""
        return self._subscription is not None and self._node.count_publishers(self.topic) > 0

    @property
    def problem(self) -> str:
        """Why detections cannot be used; empty if no reason is known."""
        if self._subscription is None:
            return ""
        if self._unnamed and time.monotonic() - self._unnamed_at_s < _UNNAMED_PERIOD_S:
            return self._unnamed_ids()
        others = sorted(self._published_types() - {self.type})
        if not others:
            return ""
        problem = f"{self.topic} has messages of the type {', '.join(others)}, which are not read"
        if missing := [name for name in others if name in TYPES and TYPES[name] is None]:
            return f"{problem}: {_INSTALL[missing[0]]}"
        if TYPES.keys() & others:
            return f"{problem}: only one type is read at a time"
        return f"{problem}: supported types are {', '.join(TYPES)}"

    def open(self, class_names: Mapping[int, str]) -> None:
        """Subscribe with the type that is published, and again if that has changed.

        The old subscription is destroyed only when the executor releases it. Until then the middleware may refuse
        another type on the topic; a later call then makes the subscription.

        Args:
            class_names: names of the numeric class ids; empty takes them from the topic of labels, if there is one.
        """
        wanted = self._wanted_type()
        if self._subscription is not None:
            if wanted == self.type:
                return
            self.close()
        self.type = wanted
        self._class_names = class_names
        read, field = _READERS[wanted]
        try:
            self._subscription = self._node.create_subscription(
                TYPES[wanted],
                self._name,
                lambda message: self._deliver(message, read, len(getattr(message, field))),
                QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
                # A separate group, because an event that arrives during the destruction blocks its group for ever.
                callback_group=MutuallyExclusiveCallbackGroup(),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
        except RuntimeError as error:  # the class of rclpy's errors
            self._node.get_logger().debug(f"cannot subscribe to {self.topic} yet: {error}")
            return
        if LabelInfo is not None and not class_names:
            self._label_subscription = self._node.create_subscription(
                LabelInfo,
                self._label_name,
                self._read_labels,
                QoSProfile(
                    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
                ),
                callback_group=MutuallyExclusiveCallbackGroup(),
            )

    def close(self) -> None:
        self._unnamed.clear()
        for subscription in (self._subscription, self._label_subscription):
            if subscription is not None:
                self._node.destroy_subscription(subscription)
        self._subscription = self._label_subscription = None

    def _published_types(self) -> set[str]:
        publishers = self._node.get_publishers_info_by_topic(self._name)
        return {publisher.topic_type.replace("/msg/", "/") for publisher in publishers}

    def _wanted_type(self) -> str:
        published = self._published_types()
        if self._subscription is not None and self.type in published:
            return self.type
        # Without a publisher, the last type is the most likely one.
        return next((name for name in filter(TYPES.get, TYPES) if name in published), self.type)

    def _read_labels(self, label_info: Any) -> None:
        self._class_names = class_names_of(label_info)
        self._unnamed.clear()

    def _deliver(
        self, message: Any, read: Callable[[Any, Mapping[int, str]], Iterable[DetectedObject | None]], number: int
    ) -> None:
        if self._subscription is None:  # closed while this message was on its way
            return
        found = [item for item in islice(read(message, self._class_names), MAX_READ) if item is not None]
        usable = sorted((item for item in found if item.class_name), key=lambda item: -item.score)
        if len(usable) < len(found):
            self._unnamed = {item.class_id for item in found if not item.class_name}
            self._unnamed_at_s = time.monotonic()
            self._node.get_logger().warning(self._unnamed_ids(), throttle_duration_sec=_LOG_PERIOD_S)
        detections = Detections(stamp_ns(message.header), message.header.frame_id, tuple(usable[:MAX_OBJECTS]))
        self._on_detections(detections, number - len(usable))

    def _unnamed_ids(self) -> str:
        ids = ", ".join(map(str, sorted(self._unnamed)[:5]))
        return (
            f"objects on {self.topic} are left out because their class ids have no name ({ids}): name the classes in "
            f"detection_classes, or publish vision_msgs/LabelInfo on {self._node.resolve_topic_name(self._label_name)}"
        )
