"""The detector of a soak: publishes objects of every image, right ones and what detectors do wrong."""

import math

from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from smart_caption_ros.msg import BoundingBox, DetectedObject, DetectedObjectArray
from std_msgs.msg import Header

from benchmarks.node_soak.images import Stamp

_OTHER_CLOCK_S = 1000
_CONTROL_CHARACTERS = "cup\x1b]0;soak\x07\r\n\x00"

FAULTS = ("none", "another clock", "no stamps", "numbers that are none", "control characters", "silent")
"""What can be wrong with the detector."""


class Detector:
    """Publishes on the topic `detections`; :attr:`fault` may be changed by another thread."""

    def __init__(self, node: Node) -> None:
        self.fault = FAULTS[0]
        """One of :data:`FAULTS`."""
        self._publisher = node.create_publisher(DetectedObjectArray, "detections", qos_profile_sensor_data)

    def publish(self, stamp: Stamp, frame_id: str) -> None:
        """Publish the objects of an image."""
        fault = self.fault
        if fault == "silent":
            return
        seconds, nanoseconds = stamp
        header = Header(frame_id=frame_id)
        if fault != "no stamps":
            header.stamp.sec = seconds + (_OTHER_CLOCK_S if fault == "another clock" else 0)
            header.stamp.nanosec = nanoseconds
        wrong = fault == "numbers that are none"
        name = _CONTROL_CHARACTERS if fault == "control characters" else "cup"
        detected = DetectedObject(
            class_name=name,
            class_id=DetectedObject.CLASS_ID_UNKNOWN,
            score=math.nan if wrong else 0.9,
            box=BoundingBox(x1=10.0, y1=10.0, x2=math.inf if wrong else 90.0, y2=math.nan if wrong else 80.0),
        )
        self._publisher.publish(DetectedObjectArray(header=header, objects=[detected]))
