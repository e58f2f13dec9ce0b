"""Publishers of the camera node, those of a camera driver: images, compressed images and camera_info."""

import array
import time

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.viewing import encode_picture

_JPEG_QUALITY = 95

Messages = tuple[Image, CompressedImage | None, CameraInfo]
"""The messages of one frame, without header; None for a compressed image that nobody subscribes to."""


class CameraOutputs:
    """Publishes on an image topic, on `<topic>/compressed`, and on `camera_info` in the namespace of the topic."""

    def __init__(self, node: Node, topic: str) -> None:
        """``topic``: topic of the images; the other topics are derived from its name after remapping."""
        self._node = node
        self.topic: str = node.resolve_topic_name(topic)
        self._image = self.publisher(Image, topic)  # unremapped topic name; rclpy applies remappings
        self._compressed = self.publisher(CompressedImage, f"{self.topic}/compressed")
        # By the convention of image_transport, the calibration of /camera/image_raw is on /camera/camera_info.
        self._info = self.publisher(CameraInfo, f"{self.topic.rpartition('/')[0]}/camera_info")

    def publisher(self, kind: type, topic: str) -> Publisher:
        """Create a publisher with the quality of service of a camera driver, which parameters may override."""
        return self._node.create_publisher(
            kind,
            topic,
            QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    @property
    def subscribers(self) -> int:
        """Number of subscriptions to the images and the compressed images."""
        return int(self._image.get_subscription_count() + self._compressed.get_subscription_count())

    def messages(self, image_bgr: NDArray[np.uint8]) -> Messages:
        """Convert an image, uint8 (H, W, 3); it is compressed only while the compressed topic has a subscriber."""
        compressed = None
        if self._compressed.get_subscription_count():
            jpeg = encode_picture(image_bgr, ".jpg", _JPEG_QUALITY)
            # The format string of the JPEG plugin of image_transport.
            compressed = CompressedImage(format="bgr8; jpeg compressed bgr8", data=array.array("B", jpeg))
        height, width = image_bgr.shape[:2]
        # A matrix k of zeros marks a camera without calibration.
        return Image(**encode_image(image_bgr)), compressed, CameraInfo(width=width, height=height)

    def publish(self, messages: Messages, header: Header) -> None:
        image, compressed, info = messages
        image.header = info.header = header
        self._image.publish(image)
        if compressed is not None:
            compressed.header = header
            self._compressed.publish(compressed)
        self._info.publish(info)

    def wait_for_all_acked(self, timeout_s: float) -> bool:
        """Wait until all subscribers have confirmed all images of reliable topics; return whether they have."""
        end_s = time.monotonic() + timeout_s
        return all(
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, end_s - time.monotonic())))
            for publisher in (self._image, self._compressed, self._info)
        )
