"""Where detected objects come from when the node has no detector: the detections topic, in either of two types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.detection.class_names import NO_OBJECTS, normalise
from smart_caption_ros.detection.detector import MAX_OBJECTS
from smart_caption_ros.msg import DetectedObjectArray
from smart_caption_ros.nodes.detection_buffer import Detections

try:
    from vision_msgs.msg import Detection2DArray
except ImportError:  # it is no part of ROS' core: our own array serves as well
    Detection2DArray = None

AUTO = "auto"
OWN_TYPE = "smart_caption_ros/DetectedObjectArray"
VISION_TYPE = "vision_msgs/Detection2DArray"
DETECTION_TYPES = (AUTO, VISION_TYPE, OWN_TYPE)
_INSTALL = "install ros-jazzy-vision-msgs"


class DetectionInput:
    """One subscription to the detections topic, of the type that is published there."""

    def __init__(self, node: Node, topic: str, on_detections: Callable[[Detections, int], None]) -> None:
        """Subscribes to nothing yet.

        Args:
            node: the node.
            topic: the topic.
            on_detections: called with what came, and with how many of its objects are no objects.
        """
        self._node = node
        self.topic: str = node.resolve_topic_name(topic)
        self._on_detections = on_detections
        self._subscription: Subscription | None = None
        self._type = VISION_TYPE if Detection2DArray is not None else OWN_TYPE
        self._class_names: Sequence[str] = ()

    @property
    def type(self) -> str:
        """The type that is subscribed to, or would be."""
        return self._type

    @property
    def is_fed(self) -> bool:
        """Whether anybody publishes there while the node listens."""
        return self._subscription is not None and self._node.count_publishers(self.topic) > 0

    def open(self, chosen: str, class_names: Sequence[str]) -> None:
        """Subscribes, or subscribes anew where the topic now has the other type.

        Args:
            chosen: one of `DETECTION_TYPES`; "auto" is the type of whoever publishes, else vision_msgs' where that
                package is installed.
            class_names: the names for class ids that are numbers.
        """
        self._class_names = class_names
        wanted = self._wanted(chosen)
        if self._subscription is not None:
            if wanted == self._type:
                return
            self.close()
        self._type = wanted
        kinds = {VISION_TYPE: (Detection2DArray, read_vision), OWN_TYPE: (DetectedObjectArray, read_own)}
        kind, read = kinds[wanted]
        self._subscription = self._node.create_subscription(
            kind,
            self.topic,
            lambda message: self._deliver(message, read),
            QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT),
            # A group that goes with the subscription: an event that comes as it is destroyed blocks its group.
            callback_group=MutuallyExclusiveCallbackGroup(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def close(self) -> None:
        """Unsubscribes."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def _wanted(self, chosen: str) -> str:
        if chosen != AUTO:
            return chosen
        kinds = {info.topic_type for info in self._node.get_publishers_info_by_topic(self.topic)}
        offered = [name for name in (VISION_TYPE, OWN_TYPE) if name.replace("/", "/msg/") in kinds]
        if Detection2DArray is None and VISION_TYPE in offered:
            offered.remove(VISION_TYPE)
            self._node.get_logger().warning(
                f"{self.topic} has detections as {VISION_TYPE}, which cannot be read: {_INSTALL}", once=True
            )
        return offered[0] if offered else self._type  # nobody publishes now: the one that did may come back

    def _deliver(self, message: Any, read: Callable[[Any, Sequence[str]], Iterable[DetectedObject | None]]) -> None:
        if self._subscription is None:  # it was closed while this message was on its way
            return
        objects = list(read(message, self._class_names))
        found = sorted(filter(None, objects), key=lambda each: -each.score)
        kept = tuple(found[:MAX_OBJECTS])
        self._on_detections(
            Detections(stamp_ns(message.header), message.header.frame_id, kept), len(objects) - len(found)
        )


def check_type(chosen: str) -> None:
    """Raises ValueError, one sentence, where a type of detections was chosen that is not installed."""
    if chosen == VISION_TYPE and Detection2DArray is None:
        raise ValueError(
            f"detection_type is {VISION_TYPE}, but vision_msgs is not installed: {_INSTALL}, or publish {OWN_TYPE}"
        )


def stamp_ns(header: Header) -> int:
    """The stamp of a header in nanoseconds; 0 for none."""
    return int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)


def read_own(message: DetectedObjectArray, class_names: Sequence[str]) -> Iterable[DetectedObject | None]:
    """The objects of our own array; None for each that is none."""
    for each in message.objects:
        box = each.box
        yield _object(each.class_name, each.class_id, each.score, (box.x1, box.y1, box.x2, box.y2), class_names)


def read_vision(message: Any, class_names: Sequence[str]) -> Iterable[DetectedObject | None]:
    """The objects of a vision_msgs/Detection2DArray by their likeliest hypotheses; None for each that is none."""
    for each in message.detections:
        hypotheses = [result.hypothesis for result in each.results if math.isfinite(result.hypothesis.score)]
        if not hypotheses:
            yield None
            continue
        best = max(hypotheses, key=lambda hypothesis: hypothesis.score)
        centre, wide, tall = each.bbox.center, each.bbox.size_x, each.bbox.size_y
        if wide > 0 and tall > 0 and centre.theta and math.isfinite(centre.theta):
            # The upright box around a turned one.
            cosine, sine = abs(math.cos(centre.theta)), abs(math.sin(centre.theta))
            wide, tall = wide * cosine + tall * sine, wide * sine + tall * cosine
        x, y = centre.position.x, centre.position.y
        box = (x - wide / 2, y - tall / 2, x + wide / 2, y + tall / 2)
        yield _object(best.class_id, -1, best.score, box, class_names)


def _object(
    name: str, number: int, score: float, box_xyxy: tuple[float, float, float, float], class_names: Sequence[str]
) -> DetectedObject | None:
    """The object; None where its class is not known, its score no number, or its box has no area."""
    name = normalise(name)
    if re.fullmatch(r"\d{1,9}", name, re.ASCII):
        name, number = "", int(name)
    if name:
        if number < 0 and name in class_names:
            number = class_names.index(name)
    elif 0 <= number < len(class_names):
        name = class_names[number]
    left, top, right, bottom = box_xyxy
    if name in NO_OBJECTS or not all(map(math.isfinite, (score, *box_xyxy))) or right <= left or bottom <= top:
        return None
    return DetectedObject(name, number, min(max(float(score), 0.0), 1.0), box_xyxy)
