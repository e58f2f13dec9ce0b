"""The camera of a soak: publishes good and bad images at a rate, raw or compressed."""

import random
import threading
import time

from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image

from benchmarks.node_soak.detector import Detector
from benchmarks.node_soak.images import Templates, frame_id
from benchmarks.node_soak.records import Record

_SENSOR_QOS = {"depth": 1, "history": HistoryPolicy.KEEP_LAST, "reliability": ReliabilityPolicy.BEST_EFFORT}


class Camera:
    """Publishes on a thread of its own, from the beginning of the block to its end, and records what it published."""

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
        """Create the publisher.

        Args:
            node: its node; its executor is not needed.
            templates: the messages.
            record: every publication is appended to ``record.published`` before it is made.
            detector: publishes the objects of every image.
            compressed: whether they are compressed images.
            rate_hz: images per second.
            bad_share: probability of a bad message.
            seed: of the choice of messages.
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
        self.stop()

    def stop(self) -> None:
        """Stop publishing."""
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
