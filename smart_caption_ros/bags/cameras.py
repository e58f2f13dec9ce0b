"""The cameras of a bag: which image topics are captioned, and on which topics their captions are written."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from smart_caption_ros.imaging import ImageMessageError
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.bag import RAW, image_messages, image_topics, read_message
from smart_caption_ros.sources.bag_storage import BagStorage

_COMPRESSED = "/compressed"
_DEPTH_TRANSPORT = "/compressedDepth"
_DEPTH_ENCODINGS = ("16UC1", "32FC1")
_DEFAULT_CAPTION_TOPIC = "/robot/caption"  # of launch/caption.launch.py


@dataclass(frozen=True)
class BagCamera:
    """A camera of a bag.

    Attributes:
        name: content of the field `camera` of its captions.
        caption_topic: topic of its captions; their text is on `<caption_topic>/text`.
    """

    image_topic: str
    name: str
    caption_topic: str


def choose_cameras(storage: BagStorage, topics: Sequence[str]) -> tuple[list[BagCamera], list[str]]:
    """Choose the image topics that are captioned.

    Args:
        topics: names of image topics; none for every camera of the bag.

    Returns:
        The cameras, and a sentence for each image topic that was left out.

    Raises:
        SourceError: there are no images, or a topic is not there.
    """
    images = image_topics(storage)
    left_out: list[str] = []
    if topics:
        chosen = [_named(storage, images, name) for name in dict.fromkeys(topics)]
        if empty := [name for name in chosen if not images[name]]:
            raise SourceError(f"the bag {storage.path} holds no messages on {', '.join(empty)}")
    else:
        if not images:
            raise SourceError(f"the bag {storage.path} has no images; {_listed(storage)}")
        chosen = _one_per_camera(storage, [name for name, count in images.items() if count], left_out)
        if not chosen:
            why = "; ".join(left_out) or f"its image topics hold no messages: {', '.join(images)}"
            raise SourceError(f"the bag {storage.path} has no images to caption: {why}")
    return _cameras(chosen), left_out


def _named(storage: BagStorage, images: dict[str, int], given: str) -> str:
    name = given if given.startswith("/") else f"/{given}"
    if name in images:
        return name
    other = next((topic.message_type for topic in storage.topics if topic.name == name), None)
    if other is not None:
        problem = f"the topic {name} of the bag {storage.path} is of type {other}, not an image"
    else:
        problem = f"the bag {storage.path} has no image topic {given}"
        if near := get_close_matches(name, list(images), n=1, cutoff=0.0):
            problem += f"; the nearest name is {near[0]}"
    there = ", ".join(f"{topic} ({count})" for topic, count in images.items())
    raise SourceError(f"{problem}; it has the image topics {there}" if there else f"{problem}; {_listed(storage)}")


def _listed(storage: BagStorage) -> str:
    there = ", ".join(f"{topic.name} ({topic.message_type}, {topic.count})" for topic in storage.topics)
    return f"it has the topics {there}" if there else "it has no topics"


def _one_per_camera(storage: BagStorage, topics: Sequence[str], left_out: list[str]) -> list[str]:
    """Leave out depth topics, and compressed topics of cameras that have a raw topic as well."""
    raw = {topic.name for topic in storage.topics if topic.message_type == RAW}
    chosen = []
    for topic in topics:
        if topic.endswith(_COMPRESSED) and topic.removesuffix(_COMPRESSED) in raw.intersection(topics):
            left_out.append(f"{topic} is left out: the same images are on {topic.removesuffix(_COMPRESSED)}")
        elif _is_depth(storage, topic):
            left_out.append(f"{topic} is left out: it holds depth, not pictures")
        else:
            chosen.append(topic)
    return chosen


def _is_depth(storage: BagStorage, topic: str) -> bool:
    """Decide by the name of the topic, else by the encoding of its first message."""
    if topic.endswith(_DEPTH_TRANSPORT):
        return True
    try:
        stored = next(image_messages(storage, [topic]))
        message = read_message(stored)
    except (StopIteration, ImageMessageError):
        return False
    encoding = message.encoding if stored.message_type == RAW else message.format.split(";")[0].strip()
    return encoding in _DEPTH_ENCODINGS


def _cameras(topics: Sequence[str]) -> list[BagCamera]:
    """Name the cameras by their namespaces: /front/image_raw is front, with captions on /front/caption.

    Where another camera could have that name as well, it is the topic without `/compressed`, else the whole topic.
    """
    bases = {topic: topic.removesuffix(_COMPRESSED) for topic in topics}
    possible = {topic: (base.rpartition("/")[0], base, topic) for topic, base in bases.items()}
    counts = Counter(name for names in possible.values() for name in {*names})
    cameras = []
    for topic, names in possible.items():
        name = next((name for name in names if counts[name] == 1), topic).rstrip("/")  # a topic may be called /
        cameras.append(BagCamera(topic, name.strip("/"), f"{name}/caption" if name else _DEFAULT_CAPTION_TOPIC))
    return cameras
