"""What one camera of the caption node has of its own: topics, images that wait, detections, answers and counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rclpy.lifecycle import LifecycleNode

from smart_caption_ros.nodes.answer_stage import AnswerStage
from smart_caption_ros.nodes.answering import ImageMessage
from smart_caption_ros.nodes.detection_buffer import DetectionBuffer, Detections
from smart_caption_ros.nodes.detection_input import DetectionInput
from smart_caption_ros.nodes.image_input import ImageInput
from smart_caption_ros.nodes.image_selection import RateLimit
from smart_caption_ros.nodes.mailbox import Mailbox
from smart_caption_ros.nodes.node_statistics import Statistics
from smart_caption_ros.nodes.outputs import Outputs

_LOG_PERIOD_S = 5.0


@dataclass(frozen=True)
class CameraTopics:
    """The topics of a camera: of its images, its detections and its captions; other names are derived from them."""

    image: str
    detections: str
    caption: str


@dataclass(frozen=True)
class ReceivedImage:
    """An image message and the time of its arrival, time.monotonic()."""

    message: ImageMessage
    at_s: float


class CameraStream:
    """One camera of the caption node.

    Attributes:
        name: name of the camera; empty for the only camera of a node.
        statistics: counts its images, answers and detections.
        mailbox: the image that waits for its turn.
        latest: the newest image received; None before the first one.
        reference: thumbnail of the last image captioned, for `trigger` change; None captions the next image.
        unreported_drops: images replaced by newer ones since the last caption, beside those that the mailbox counts.
        rate: limits the rate of its captions.
        detections: the latest messages of its detections topic.
        image_input: subscription to its images.
        detection_input: subscription to its detections.
        stage: completes its answers.
        outputs: publishers of its answers; None while the node is unconfigured.
    """

    def __init__(
        self,
        node: LifecycleNode,
        name: str,
        topics: CameraTopics,
        on_image: Callable[[CameraStream, ReceivedImage], None],
    ) -> None:
        """Create the stream without subscriptions and publishers.

        Args:
            node: the node.
            name: name of the camera; empty for the only camera of a node.
            topics: its topics.
            on_image: called with the stream and each image that it received, on a thread of the stream.
        """
        self.name = name
        self.statistics = Statistics()
        self.mailbox: Mailbox[ReceivedImage] = Mailbox()
        self.latest: ReceivedImage | None = None
        self.reference: NDArray[np.float32] | None = None
        self.unreported_drops = 0
        self.rate = RateLimit()
        self.detections = DetectionBuffer()
        self.image_input = ImageInput(node, topics.image, self._on_image, self.statistics)
        self.detection_input = DetectionInput(node, topics.detections, self._on_detections)
        self.stage = AnswerStage(node, self.statistics)
        self.outputs: Outputs | None = None
        self._node = node
        self._topics = topics
        self._pass_on = on_image

    def create_outputs(self) -> None:
        """Create the publishers."""
        self.outputs = Outputs(self._node, self._topics.caption)

    def destroy_outputs(self) -> None:
        """Destroy the publishers."""
        if self.outputs is not None:
            self.outputs.destroy()
            self.outputs = None

    def close_inputs(self) -> None:
        """Unsubscribe, and discard the detections and the image that waits."""
        self.image_input.close()
        self.detection_input.close()
        self.discard_waiting()
        self.detections.clear()

    def forget(self) -> None:
        """Forget the images and texts so far: the next image is captioned and its text published."""
        self.latest = self.reference = None
        self.unreported_drops = 0
        if self.outputs is not None:
            self.outputs.forget_text()

    def discard_waiting(self) -> None:
        """Discard the image that waits in the mailbox, and count it as passed over."""
        self.statistics.count_passed_over(self.mailbox.clear())

    def _on_image(self, image: ImageMessage) -> None:
        self.statistics.count_received()
        self.latest = ReceivedImage(image, time.monotonic())
        self._pass_on(self, self.latest)

    def _on_detections(self, detections: Detections, left_out: int) -> None:
        self.statistics.count_detections(left_out)
        if detections.stamp_ns:
            self.detections.add(detections)
        else:
            self._node.get_logger().warning(
                f"detections without a stamp on {self.detection_input.topic} belong to no image: the detector has to "
                "copy the header of its image",
                throttle_duration_sec=_LOG_PERIOD_S,
            )
