"""The camera of a soak: publishes good and bad images at a rate, raw or compressed, as the node subscribes."""

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
        raw: Templates,
        compressed: Templates,
        record: Record,
        detector: Detector,
        *,
        rate_hz: float,
        bad_share: float,
        seed: int,
    ) -> None:
        """Create the publishers.

        Args:
            node: their node; its executor is not needed.
            raw: messages of the topic `image`.
            compressed: messages of the topic `image/compressed`.
            record: every publication is appended to ``record.published`` before it is made.
            detector: publishes the objects of every image.
            rate_hz: images per second.
            bad_share: probability of a bad message.
            seed: of the choice of messages.
        """
        self._clock = node.get_clock()
        self._raw, self._compressed = raw, compressed
        self._detector = detector
        self._record, self._period_s, self._bad_share = record, 1.0 / rate_hz, bad_share
        self._random = random.Random(seed)
        self._publisher = node.create_publisher(Image, "image", QoSProfile(**_SENSOR_QOS))
        self._compressed_publisher = node.create_publisher(
            CompressedImage, "image/compressed", QoSProfile(**_SENSOR_QOS)
        )
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
        is_compressed = self._compressed_publisher.get_subscription_count() > 0
        template = (self._compressed if is_compressed else self._raw).choose(self._random, self._bad_share)
        number = len(self._record.published)
        message, stamp = template.stamped(number, self._clock.now().nanoseconds)
        self._record.published.append((template, stamp))
        (self._compressed_publisher if is_compressed else self._publisher).publish(message)
        self._detector.publish(stamp, frame_id(number))
