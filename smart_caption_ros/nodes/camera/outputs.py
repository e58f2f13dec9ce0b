"""Publishers of the camera node: images, compressed images and the calibration, as a camera driver has them."""

from __future__ import annotations

import array
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from sensor_msgs.msg import RegionOfInterest as RegionOfInterestMessage
from std_msgs.msg import Header

from smart_caption_ros.imaging.camera_calibration import CameraCalibration
from smart_caption_ros.imaging.errors import CalibrationError
from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.viewing import encode_picture

CAMERA_INFO = "camera_info"
_FILE_SCHEME, _PACKAGE_SCHEME = "file://", "package://"

Messages = tuple[Image, CompressedImage | None, CameraInfo]
"""The messages of one frame, without their header; None for an image that nobody subscribes to."""


class CameraOutputs:
    """Publishes on an image topic, on its `/compressed`, and on the `camera_info` beside it."""

    def __init__(self, node: Node, topic: str, calibration: CameraCalibration | None, *, reliable: bool) -> None:
        """Create the publishers.

        Args:
            node: the node.
            topic: topic of the images; the other topics are derived from its name after remapping.
            calibration: of the camera; None publishes the size of the images alone.
            reliable: publish reliably with depth 10, instead of best effort with depth 1.
        """
        self._node = node
        self._calibration = calibration
        self._reliable = reliable
        self._warned_of_size = False
        self.topic: str = node.resolve_topic_name(topic)
        self._image = self.publisher(Image, topic)  # as it was given: rclpy remaps every name that it gets
        self._compressed = self.publisher(CompressedImage, f"{self.topic}/compressed")
        # By the convention of image_transport, /camera/image_raw has its calibration on /camera/camera_info.
        self._info = self.publisher(CameraInfo, f"{self.topic.rpartition('/')[0]}/{CAMERA_INFO}")

    def publisher(self, kind: type, topic: str) -> Publisher:
        """Create a publisher with the quality of service of the images."""
        return self._node.create_publisher(
            kind,
            topic,
            QoSProfile(
                depth=10 if self._reliable else 1,
                history=HistoryPolicy.KEEP_LAST,
                reliability=ReliabilityPolicy.RELIABLE if self._reliable else ReliabilityPolicy.BEST_EFFORT,
            ),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    @property
    def subscribers(self) -> int:
        """Number of subscriptions to the images and the compressed images."""
        return int(self._image.get_subscription_count() + self._compressed.get_subscription_count())

    def messages(self, image_bgr: NDArray[np.uint8], jpeg_quality: int) -> Messages:
        """Convert an image; it is compressed only while the compressed topic has a subscriber.

        Args:
            image_bgr: uint8 (H, W, 3).
            jpeg_quality: 1 to 100.
        """
        compressed = None
        if self._compressed.get_subscription_count():
            jpeg = encode_picture(image_bgr, ".jpg", jpeg_quality)
            # The format that image_transport's plugin for JPEG writes.
            compressed = CompressedImage(format="bgr8; jpeg compressed bgr8", data=array.array("B", jpeg))
        height, width = image_bgr.shape[:2]
        return Image(**encode_image(image_bgr)), compressed, self._camera_info(width, height)

    def publish(self, messages: Messages, header: Header) -> None:
        """Publish the messages of one frame with this header."""
        image, compressed, info = messages
        image.header = info.header = header
        self._image.publish(image)
        if compressed is not None:
            compressed.header = header
            self._compressed.publish(compressed)
        self._info.publish(info)

    def wait_for_all_acked(self, timeout_s: float) -> bool:
        """Wait until all subscribers have confirmed all reliable images; return whether they have."""
        end_s = time.monotonic() + timeout_s
        return all(
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, end_s - time.monotonic())))
            for publisher in (self._image, self._compressed, self._info)
        )

    def _camera_info(self, width: int, height: int) -> CameraInfo:
        if self._calibration is not None and self._calibration.image_size == (width, height):
            return camera_info(self._calibration)
        if self._calibration is not None and not self._warned_of_size:
            self._warned_of_size = True
            self._node.get_logger().warning(
                "camera_info is published without the calibration, which is for images of "
                f"{' x '.join(map(str, self._calibration.image_size))} and not of {width} x {height} pixels"
            )
        # A matrix k of zeros marks a camera without calibration.
        return CameraInfo(width=width, height=height)


def camera_info(calibration: CameraCalibration) -> CameraInfo:
    """Build the message of a calibration."""
    fields = asdict(calibration) | {"roi": RegionOfInterestMessage(**asdict(calibration.roi))}
    return CameraInfo(**{name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()})


def calibration_path(url: str) -> Path:
    """Return the file that `camera_info_url` names: a path, `file://` with a path, or `package://PACKAGE/...`.

    Raises:
        CalibrationError: the URL has another scheme, or there is no such package; one sentence.
    """
    if url.startswith(_PACKAGE_SCHEME):
        package, _, path = url[len(_PACKAGE_SCHEME) :].partition("/")
        try:
            return Path(get_package_share_directory(package), path)
        except (PackageNotFoundError, ValueError) as error:  # ValueError: the name is malformed
            raise CalibrationError(f"camera_info_url: there is no package {package!r}") from error
        except OSError as error:  # AMENT_PREFIX_PATH is not set
            raise CalibrationError(f"camera_info_url: packages cannot be found ({error})") from error
    if url.startswith(_FILE_SCHEME):
        url = url[len(_FILE_SCHEME) :]
        if not url.startswith("/"):
            raise CalibrationError("camera_info_url: file:// needs a full path, as in file:///home/me/camera.yaml")
    elif "://" in url:
        raise CalibrationError(f"camera_info_url must be a path or start with file:// or package://, not {url!r}")
    return Path(url).expanduser()
