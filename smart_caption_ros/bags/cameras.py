"""The cameras of a bag: which image topics are captioned, and on which topics their captions are written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from smart_caption_ros.bags.message_types import typestore
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.bag import DECODERS
from smart_caption_ros.sources.bag_storage import BagStorage, Topic

_RAW = "sensor_msgs/msg/Image"
_COMPRESSED = "/compressed"
_DEPTH_TRANSPORT = "/compressedDepth"
_DEPTH_ENCODINGS = ("16UC1", "32FC1")
_DEFAULT_CAPTION_TOPIC = "/robot/caption"  # of launch/caption.launch.py


@dataclass(frozen=True)
class Camera:
    """A camera of a bag.

    Attributes:
        image_topic: its images.
        message_type: their type.
        name: what its captions have in the field `camera`.
        caption_topic: where its captions are written; their text is on `<caption_topic>/text`.
        images: number of images that can be read.
    """

    image_topic: str
    message_type: str
    name: str
    caption_topic: str
    images: int


@dataclass(frozen=True)
class Thinning:
    """Which images of a camera are captioned.

    Attributes:
        every: every Nth one, from the first one on.
        rate_hz: at most so many per second of the recording; None for all.
    """

    every: int = 1
    rate_hz: float | None = None

    def start(self) -> ThinnedCamera:
        """Return the selection of one camera."""
        return ThinnedCamera(self)


class ThinnedCamera:
    """Selects the images of one camera, in the order of the recording."""

    def __init__(self, thinning: Thinning) -> None:
        self._thinning = thinning
        self._count = 0
        self._start_ns: int | None = None
        self._periods = 0

    def wants(self, recorded_ns: int) -> bool:
        """Return whether the next image is captioned, which was recorded at this time."""
        index, self._count = self._count, self._count + 1
        if index % self._thinning.every:
            return False
        rate_hz = self._thinning.rate_hz
        if rate_hz is None:
            return True
        if self._start_ns is None:
            self._start_ns = recorded_ns
        # A grid in time, so that a camera that is not quite regular keeps the mean rate.
        periods = (recorded_ns - self._start_ns) * 1e-9 * rate_hz
        if periods < self._periods:
            return False
        self._periods = math.floor(periods) + 1
        return True


def choose_cameras(storage: BagStorage, topics: Sequence[str]) -> tuple[list[Camera], list[str]]:
    """Choose the image topics that are captioned.

    Args:
        storage: the open bag.
        topics: names of image topics; none for every camera of the bag.

    Returns:
        The cameras, and a sentence for each image topic that was left out.

    Raises:
        SourceError: there are no images, or a topic is not there.
    """
    images = {topic.name: topic for topic in storage.topics if topic.message_type in DECODERS}
    left_out: list[str] = []
    if topics:
        chosen = [_named(storage, images, name) for name in dict.fromkeys(topics)]
        empty = [topic.name for topic in chosen if not topic.count]
        if empty:
            raise SourceError(f"the bag {storage.path} holds no messages on {', '.join(empty)}")
    else:
        if not images:
            raise SourceError(f"the bag {storage.path} has no images; {_listed(storage.topics)}")
        chosen = _of_every_camera(storage, [topic for topic in images.values() if topic.count], left_out)
        if not chosen:
            why = "; ".join(left_out) or f"its image topics hold no messages: {', '.join(images)}"
            raise SourceError(f"the bag {storage.path} has no images to caption: {why}")
    return _cameras(chosen), left_out


def _named(storage: BagStorage, images: dict[str, Topic], given: str) -> Topic:
    name = given if given.startswith("/") else f"/{given}"
    if name in images:
        return images[name]
    other = next((topic.message_type for topic in storage.topics if topic.name == name), None)
    if other is not None:
        problem = f"the topic {name} of the bag {storage.path} is of type {other}, not an image"
    else:
        problem = f"the bag {storage.path} has no image topic {given}"
        if near := get_close_matches(name, list(images), n=1, cutoff=0.0):
            problem += f"; the nearest name is {near[0]}"
    there = ", ".join(f"{topic.name} ({topic.count})" for topic in images.values())
    raise SourceError(
        f"{problem}; it has the image topics {there}" if there else f"{problem}; {_listed(storage.topics)}"
    )


def _listed(topics: Sequence[Topic]) -> str:
    there = ", ".join(f"{topic.name} ({topic.message_type}, {topic.count})" for topic in topics)
    return f"it has the topics {there}" if there else "it has no topics"


def _of_every_camera(storage: BagStorage, topics: Sequence[Topic], left_out: list[str]) -> list[Topic]:
    """Return one topic a camera: depth is left out, and of raw and compressed images of one camera the raw ones."""
    raw = {topic.name for topic in topics if topic.message_type == _RAW}
    chosen = []
    for topic in topics:
        if topic.name.endswith(_COMPRESSED) and topic.name[: -len(_COMPRESSED)] in raw:
            left_out.append(f"{topic.name} is left out: the same images are on {topic.name[: -len(_COMPRESSED)]}")
        elif _is_depth(storage, topic):
            left_out.append(f"{topic.name} is left out: it holds depth, not pictures")
        else:
            chosen.append(topic)
    return chosen


def _is_depth(storage: BagStorage, topic: Topic) -> bool:
    if topic.name.endswith(_DEPTH_TRANSPORT):
        return True
    for stored in storage.messages([topic.name]):
        try:
            message: Any = typestore().deserialize_cdr(stored.data, stored.message_type)
        except Exception:  # a malformed first message says nothing of the others
            return False
        encoding = message.encoding if topic.message_type == _RAW else message.format.split(";")[0].strip()
        return encoding in _DEPTH_ENCODINGS
    return False


def _cameras(topics: Sequence[Topic]) -> list[Camera]:
    """Name the cameras by their namespaces: /front/image_raw is front, with captions on /front/caption."""
    bases = {topic.name: topic.name.removesuffix(_COMPRESSED) for topic in topics}
    namespaces = Counter(base.rpartition("/")[0] for base in bases.values())
    cameras = []
    for topic in topics:
        base = bases[topic.name]
        place = base.rpartition("/")[0]
        if namespaces[place] > 1:
            place = base
        caption_topic = f"{place}/caption" if place else _DEFAULT_CAPTION_TOPIC
        cameras.append(Camera(topic.name, topic.message_type, place.strip("/"), caption_topic, topic.count))
    return cameras
