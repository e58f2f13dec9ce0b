"""An image topic of a ROS 2 bag (sqlite3 or mcap), read by rosbags without ROS."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageMessageError
from smart_caption_ros.imaging.image_messages import decode_compressed, decode_image
from smart_caption_ros.sources.bag_storage import BagStorage, StoredMessage, is_bag
from smart_caption_ros.sources.source import Frame, FrameSource, SourceError
from smart_caption_ros.text import error_line

RAW = "sensor_msgs/msg/Image"
DECODERS: dict[str, Callable[[Any], NDArray[np.uint8]]] = {
    RAW: decode_image,
    "sensor_msgs/msg/CompressedImage": decode_compressed,
}
"""By type of the message: converts it to uint8 HxWx3 BGR, or raises ImageMessageError."""


class Bag(FrameSource):
    """The images of one topic of a bag: a bag's folder, or a single .mcap or .db3 file.

    Stamps are those of the message headers, or the recording times if a header has none.
    """

    def __init__(self, spec: str, *, topic: str | None = None) -> None:
        super().__init__(spec)
        with BagStorage(Path(spec)) as storage:
            counts = image_topics(storage)
            duration_s = storage.duration_s
        self.topic = choose_image_topic(spec, counts, topic)
        self.known_length = length = counts[self.topic]
        self.mean_rate_hz = (length - 1) / duration_s if length > 1 and duration_s else 1.0
        """Images per second of the recording; 1 for a single image."""

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return is_bag(Path(spec))

    @property
    def description(self) -> str:
        return f"bag {self.spec}, topic {self.topic} ({self.known_length} images)"

    def _frames(self, step: int) -> Iterator[Frame]:
        name = self.topic.strip("/").replace("/", "_")
        with BagStorage(Path(self.spec)) as storage:
            for index, stored in enumerate(image_messages(storage, [self.topic])):
                frame_name = f"{name}#{index:06d}"
                try:
                    message = read_message(stored)
                    image_bgr = DECODERS[stored.message_type](message)
                except ImageMessageError as error:
                    self._skip(frame_name, index, error)
                    continue
                stamp = message.header.stamp
                stamp_ns = stamp.sec * 10**9 + stamp.nanosec
                yield Frame(image_bgr, frame_name, index, stamp_ns or stored.recorded_ns)


def image_topics(storage: BagStorage) -> dict[str, int]:
    """Return the number of images on each image topic; a topic may have images of both types."""
    counts: Counter[str] = Counter()
    for topic in storage.topics:
        if topic.message_type in DECODERS:
            counts[topic.name] += topic.count
    return counts


def image_messages(storage: BagStorage, topics: Collection[str]) -> Iterator[StoredMessage]:
    """Yield the images on some topics, in the order of :meth:`BagStorage.messages`."""
    return (stored for stored in storage.messages(topics) if stored.message_type in DECODERS)


def read_message(stored: StoredMessage) -> Any:
    """Deserialise an image message; raises ImageMessageError where it is malformed."""
    try:
        return _image_types().deserialize_cdr(stored.data, stored.message_type)
    except Exception as error:  # rosbags raises many kinds of exceptions for a malformed message
        raise ImageMessageError(f"the message cannot be read: {error_line(error)}") from error


@cache
def _image_types() -> Any:
    """Return the types of Jazzy, which read every bag, because the image types are equal in all distributions."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


def choose_image_topic(spec: str, counts: Mapping[str, int], topic: str | None) -> str:
    """Return the image topic with the name `topic`, or the only one with images if that is None.

    Raises SourceError if there is no such topic, or if there are several.
    """
    if not counts:
        raise SourceError(f"the bag {spec} has no topic of type Image or CompressedImage")
    there = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    if topic is not None:
        name = topic if topic.startswith("/") else f"/{topic}"
        if name not in counts:
            raise SourceError(f"the bag {spec} has no image topic {topic}; it has {there}")
        return name
    filled = [name for name, count in counts.items() if count]
    if not filled:
        raise SourceError(f"the image topics of the bag {spec} hold no messages: {there}")
    if len(filled) > 1:
        raise SourceError(f"the bag {spec} has several image topics; name one as the topic: {there}")
    return filled[0]
