"""Keep the last images of an image topic, by their stamps, for the captions of these images."""

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from smart_caption_ros.caption_messages import stamp_ns
from smart_caption_ros.imaging.image_messages import ImageMessageError, decode_compressed, decode_image
from smart_caption_ros.record import LazyImage
from smart_caption_ros.text import shortened

IMAGE_TYPES = {"sensor_msgs/msg/Image": Image, "sensor_msgs/msg/CompressedImage": CompressedImage}

_MAX_IMAGES = 64
_MAX_BYTES = 128_000_000


class ImageHistory:
    """Subscribes to an image topic and keeps its last images, serialised, until their captions arrive."""

    def __init__(
        self, node: Node, topic: str, type_name: str, on_image: Callable[[], None], group: CallbackGroup
    ) -> None:
        self.topic = topic
        self._node = node
        self._type = IMAGE_TYPES[type_name]
        self._on_image = on_image
        self._images: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0
        # Best effort matches every publisher. Raw, so that images without a caption are not deserialised.
        qos = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._subscription = node.create_subscription(
            self._type, topic, self._keep, qos, raw=True, callback_group=group
        )

    def destroy(self) -> None:
        self._node.destroy_subscription(self._subscription)

    def take(self, stamp_ns: int) -> LazyImage | None:
        """Return the image with this stamp, and drop it and the images before it; None if there is none."""
        if stamp_ns not in self._images:
            return None
        while True:
            stamp, serialised = self._images.popitem(last=False)
            self._bytes -= len(serialised)
            if stamp == stamp_ns:
                break
        return LazyImage(lambda: self._pixels(serialised), self._file(serialised))

    def _keep(self, serialised: bytes) -> None:
        try:
            stamp = stamp_ns(deserialize_message(serialised, Header))  # every image message begins with a header
        except RuntimeError:  # the class of rclpy's errors: the message is not an image
            return
        self._bytes += len(serialised) - len(self._images.pop(stamp, b""))
        self._images[stamp] = serialised
        while len(self._images) > _MAX_IMAGES or (self._bytes > _MAX_BYTES and len(self._images) > 1):
            self._bytes -= len(self._images.popitem(last=False)[1])
        self._on_image()

    def _file(self, serialised: bytes) -> bytes | None:
        """Return the bytes of a compressed image; None for a raw one or a message that cannot be read."""
        if self._type is Image:
            return None
        try:
            return bytes(deserialize_message(serialised, CompressedImage).data)
        except Exception:  # `_pixels` reports the reason
            return None

    def _pixels(self, serialised: bytes) -> NDArray[np.uint8]:
        try:
            if self._type is Image:
                return decode_image(deserialize_message(serialised, Image))
            return decode_compressed(deserialize_message(serialised, CompressedImage))
        except ImageMessageError:
            raise
        except Exception as error:  # RMWError, ValueError or others, because any node may have sent these bytes
            raise ImageMessageError(f"a message on {self.topic} is not an image: {shortened(str(error))}") from error
