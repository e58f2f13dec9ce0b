"""Publishers of the caption node: captions, their text, and overlays on demand."""

from __future__ import annotations

import array

import cv2
import numpy as np
from numpy.typing import NDArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answering import ImageAnswer
from smart_caption_ros.nodes.messages import STATUS_NAMES
from smart_caption_ros.viewing import draw_overlay, encode_picture


class Outputs:
    """Publishes on `<topic>`, `<topic>/text`, `<topic>/image` and `<topic>/image/compressed`."""

    def __init__(self, node: LifecycleNode, topic: str) -> None:
        """Create lifecycle publishers, which the node activates and deactivates with itself.

        Args:
            node: the node.
            topic: topic of the captions; the other topics are derived from its name after remapping.
        """
        self._node = node
        self.topic: str = node.resolve_topic_name(topic)
        self._caption, self._text, self._overlay, self._overlay_jpeg = (
            node.create_lifecycle_publisher(
                kind,
                name,
                # One profile per publisher, because rclpy writes the overrides into it.
                QoSProfile(depth=depth, history=HistoryPolicy.KEEP_LAST, reliability=reliability),
                # A group of its own, because an event that arrives during the destruction blocks its group for ever.
                callback_group=MutuallyExclusiveCallbackGroup(),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
            for kind, name, depth, reliability in (
                (Caption, self.topic, 10, ReliabilityPolicy.RELIABLE),
                (String, f"{self.topic}/text", 10, ReliabilityPolicy.RELIABLE),
                (Image, f"{self.topic}/image", 5, ReliabilityPolicy.BEST_EFFORT),
                (CompressedImage, f"{self.topic}/image/compressed", 5, ReliabilityPolicy.BEST_EFFORT),
            )
        )

    def destroy(self) -> None:
        """Destroy the publishers."""
        for publisher in (self._caption, self._text, self._overlay, self._overlay_jpeg):
            self._node.destroy_lifecycle_publisher(publisher)

    def publish(self, answer: ImageAnswer) -> None:
        """Publish the message, and its text if the status is STATUS_OK."""
        self._caption.publish(answer.message)
        if answer.message.status == Caption.STATUS_OK:
            self._text.publish(String(data=answer.message.text))

    def publish_overlay(self, answer: ImageAnswer, *, max_side_px: int, jpeg_quality: int) -> None:
        """Draw and publish the overlay while one of its topics has a subscriber.

        Args:
            answer: the answer; without a caption there is no overlay.
            max_side_px: maximum length of the overlay's longer side; 0 keeps the size.
            jpeg_quality: 1 to 100.

        Raises:
            OSError: OpenCV cannot encode the overlay.
        """
        wanted_raw, wanted_jpeg = (p.get_subscription_count() > 0 for p in (self._overlay, self._overlay_jpeg))
        evidence, message = answer.evidence, answer.message
        if not (wanted_raw or wanted_jpeg) or answer.image_bgr is None or evidence is None:
            return
        title = [message.camera, "" if message.status == Caption.STATUS_OK else STATUS_NAMES[message.status]]
        overlay_bgr = _scaled_down(
            draw_overlay(
                answer.image_bgr,
                evidence.caption,
                ": ".join(filter(None, title)) or None,
                evidence.grounding,
            ),
            max_side_px,
        )
        if wanted_raw:
            self._overlay.publish(Image(header=message.header, **encode_image(overlay_bgr)))
        if wanted_jpeg:
            jpeg = encode_picture(overlay_bgr, ".jpg", jpeg_quality)
            self._overlay_jpeg.publish(
                CompressedImage(
                    header=message.header,
                    format="bgr8; jpeg compressed bgr8",
                    data=array.array("B", jpeg),
                )
            )


def _scaled_down(image_bgr: NDArray[np.uint8], max_side_px: int) -> NDArray[np.uint8]:
    height, width = image_bgr.shape[:2]
    scale = max_side_px / max(height, width)
    if not 0 < scale < 1:
        return image_bgr
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(image_bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
