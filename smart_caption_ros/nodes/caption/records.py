"""The image as the caption node received it; its caption becomes a :class:`smart_caption_ros.record.CaptionRecord`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sensor_msgs.msg import CompressedImage, Image

from smart_caption_ros.nodes.caption.detection_buffer import ExpectedDetections

if TYPE_CHECKING:
    from smart_caption_ros.nodes.caption.publisher import Publisher

ImageMessage: TypeAlias = Image | CompressedImage


@dataclass(frozen=True)
class ReceivedImage:
    """An image as it was received.

    Attributes:
        stamp_ns: stamp of the image, nanoseconds; 0 for an image without a stamp.
        received_s: time of arrival by :func:`time.monotonic`, seconds.
        publisher: publisher of its camera; None if the camera is unknown.
        detections: the detections of the image that are expected on the topic; None if the topic is not used.
        dropped: number of images of its camera that were replaced since the last caption.
    """

    message: ImageMessage
    stamp_ns: int
    received_s: float
    publisher: "Publisher | None" = None
    detections: ExpectedDetections | None = None
    dropped: int = 0
