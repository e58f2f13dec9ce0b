"""The image as the caption node received it; :mod:`smart_caption_ros.record` has the caption that it becomes."""

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
        stamp_ns: its stamp in nanoseconds; 0 for an image without a stamp.
        at_s: time of its arrival, time.monotonic().
        detections: its detections on the topic of its camera; None where the topic is unused.
        dropped: images of its camera that it and those before it have replaced since the last caption.
    """

    message: ImageMessage
    stamp_ns: int
    at_s: float
    publisher: "Publisher | None" = None
    detections: ExpectedDetections | None = None
    dropped: int = 0
