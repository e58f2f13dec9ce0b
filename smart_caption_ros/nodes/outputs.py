"""What the caption node publishes: captions, their text twin, and the overlay for whoever watches."""

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
from smart_caption_ros.nodes.answering import Answer
from smart_caption_ros.nodes.messages import STATUS_NAMES
from smart_caption_ros.viewing import draw_overlay, encode_picture


class Outputs:
    """The publishers on `<topic>`, `<topic>/text`, `<topic>/image` and `<topic>/image/compressed`."""

    def __init__(self, node: LifecycleNode, topic: str) -> None:
        """Makes the publishers on `node`, which activates and deactivates them with itself.

        Args:
            node: the node.
            topic: where captions go; resolved first, so that the other topics follow a remap of it.
        """
        self._node = node
        self.topic: str = node.resolve_topic_name(topic)
        self._caption, self._text, self._overlay, self._overlay_jpeg = (
            node.create_lifecycle_publisher(
                kind,
                name,
                # A profile each: rclpy writes the overrides into the one that it is given.
                QoSProfile(depth=depth, history=HistoryPolicy.KEEP_LAST, reliability=reliability),
                # A group that goes with the publisher: an event that comes as it is destroyed blocks its group.
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
        """Takes the topics away again."""
        for publisher in (self._caption, self._text, self._overlay, self._overlay_jpeg):
            self._node.destroy_lifecycle_publisher(publisher)

    def publish(self, answer: Answer) -> None:
        """Sends the caption, and its text where the caption is good enough to be spoken."""
        self._caption.publish(answer.message)
        if answer.message.status == Caption.STATUS_OK:
            self._text.publish(String(data=answer.message.text))

    def publish_overlay(self, answer: Answer, *, max_side_px: int, jpeg_quality: int) -> None:
        """Draws and sends the overlay to whoever is subscribed; does nothing for nobody.

        Args:
            answer: an answer; one without a caption has no overlay.
            max_side_px: the overlay's longest side; a larger one is scaled down, 0 keeps the size.
            jpeg_quality: 1 to 100.
        """
        watched, watched_jpeg = (p.get_subscription_count() > 0 for p in (self._overlay, self._overlay_jpeg))
        evidence, message = answer.evidence, answer.message
        if not (watched or watched_jpeg) or answer.image_bgr is None or evidence is None:
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
        if watched:
            self._overlay.publish(Image(header=message.header, **encode_image(overlay_bgr)))
        if watched_jpeg:
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
