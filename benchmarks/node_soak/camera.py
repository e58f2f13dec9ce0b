"""The camera and the detector of a soak.

The camera publishes good and bad images at a rate, raw or compressed. The detector publishes objects for every image,
either correct ones or with the faults of real detectors.
"""

import math
import random
import threading
import time

from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import BoundingBox, DetectedObject, DetectedObjectArray
from std_msgs.msg import Header

from benchmarks.node_soak.images import Stamp, Templates, frame_id
from benchmarks.node_soak.records import Record

_SENSOR_QOS = {"depth": 1, "history": HistoryPolicy.KEEP_LAST, "reliability": ReliabilityPolicy.BEST_EFFORT}
_OTHER_CLOCK_S = 1000
_CONTROL_CHARACTERS = "cup\x1b]0;soak\x07\r\n\x00"

FAULTS = ("none", "another clock", "no stamps", "numbers that are none", "control characters", "silent")
"""Faults of the detector."""


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


class Camera:
    """A context manager that publishes images on a thread and records what it published."""

    def __init__(
        self,
        node: Node,
        templates: Templates,
        record: Record,
        detector: Detector,
        *,
        compressed: bool,
        rate_hz: float,
        bad_share: float,
        seed: int,
    ) -> None:
        """
        Args:
            node: its node; its executor is not needed.
            record: every publication is appended to ``record.published`` before it is made.
            rate_hz: images per second.
            bad_share: probability of a bad message.
        """
        self._clock = node.get_clock()
        self._templates = templates
        self._detector = detector
        self._record, self._period_s, self._bad_share = record, 1.0 / rate_hz, bad_share
        self._random = random.Random(seed)
        kind, topic = (CompressedImage, "image/compressed") if compressed else (Image, "image")
        self._publisher = node.create_publisher(kind, topic, QoSProfile(**_SENSOR_QOS))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="camera", daemon=True)

    def __enter__(self) -> "Camera":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            self._publish()
            due_s = max(due_s + self._period_s, time.monotonic())  # no burst after a delay, as a camera

    def _publish(self) -> None:
        template = self._templates.choose(self._random, self._bad_share)
        number = len(self._record.published)
        message, stamp = template.stamped(number, self._clock.now().nanoseconds)
        self._record.published.append((template, stamp))
        self._publisher.publish(message)
        self._detector.publish(stamp, frame_id(number))
