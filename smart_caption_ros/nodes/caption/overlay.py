"""The overlay of captions, the image with boxes, caption and named objects, drawn on a separate thread."""

import array
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from rclpy.lifecycle import LifecyclePublisher
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.imaging.pixels import shrink_image
from smart_caption_ros.mailbox import Mailbox
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.viewing import draw_overlay, encode_picture

MAX_SIDE_PX = 1280
"""Maximum length of the longer side, pixels; larger images are scaled down before drawing, which is faster."""
_JPEG_QUALITY = 80
_LOG_PERIOD_S = 5.0


class Overlay:
    """Publishes an image and its JPEG file, each while it has subscribers."""

    def __init__(self, node: Node, image: LifecyclePublisher, jpeg: LifecyclePublisher) -> None:
        self._node, self._image, self._jpeg = node, image, jpeg
        self._undrawn: Mailbox[tuple[Header, CaptionRecord]] = Mailbox()
        self._drawing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="overlay")

    @property
    def is_watched(self) -> bool:
        return bool(self._image.get_subscription_count() or self._jpeg.get_subscription_count())

    def publish(self, header: Header, record: CaptionRecord) -> None:
        """Draw and publish a record with a caption and its image; it replaces a record that waits to be drawn."""
        if self._undrawn.put((header, record)):
            self._drawing.submit(self._draw_newest)

    def wait_until_idle(self) -> None:
        self._drawing.submit(lambda: None).result()

    def close(self) -> None:
        """End the thread that draws."""
        self._undrawn.clear()
        self._drawing.shutdown()

    def _draw_newest(self) -> None:
        waiting = self._undrawn.take()
        if waiting is None:
            return
        try:
            self._draw(*waiting[0])
        except Exception as error:  # from OpenCV, or because the topic has been destroyed
            self._node.get_logger().error(f"cannot publish the overlay: {error}", throttle_duration_sec=_LOG_PERIOD_S)

    def _draw(self, header: Header, record: CaptionRecord) -> None:
        overlay_bgr = overlay_of(record)
        if self._image.get_subscription_count():
            self._image.publish(Image(header=header, **encode_image(overlay_bgr)))
        if self._jpeg.get_subscription_count():
            data = array.array("B", encode_picture(overlay_bgr, ".jpg", _JPEG_QUALITY))
            self._jpeg.publish(CompressedImage(header=header, format="bgr8; jpeg compressed bgr8", data=data))


def overlay_of(record: CaptionRecord) -> NDArray[np.uint8]:
    """Draw the overlay of a record with a caption and its image, at most :data:`MAX_SIDE_PX` on the longer side."""
    assert record.image is not None
    status = "" if record.status is CaptionStatus.OK else record.status.value
    title = ": ".join(filter(None, (record.camera, status)))
    image_bgr = shrink_image(record.image.bgr(), MAX_SIDE_PX)
    caption = record.caption.resized(image_bgr.shape[1], image_bgr.shape[0])
    overlay_bgr = draw_overlay(image_bgr, caption, title or None, record.grounding)
    return shrink_image(overlay_bgr, MAX_SIDE_PX)  # with the strip below, an upright image is longer
