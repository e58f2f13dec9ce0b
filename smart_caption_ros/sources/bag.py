"""An image topic of a ROS 2 bag (sqlite3 or mcap), read by rosbags without ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageMessageError
from smart_caption_ros.imaging.image_messages import decode_compressed, decode_image
from smart_caption_ros.sources.source import Frame, FrameSource, SourceError

if TYPE_CHECKING:
    from rosbags.rosbag2 import Reader

_DECODERS: dict[str, Callable[[Any], NDArray[np.uint8]]] = {
    "sensor_msgs/msg/Image": decode_image,
    "sensor_msgs/msg/CompressedImage": decode_compressed,
}
_STORAGE_SUFFIXES = (".mcap", ".db3")


class Bag(FrameSource):
    """The images of one topic of a bag: a bag's folder, or a single .mcap or .db3 file.

    Stamps are those of the message headers, or the recording times if a header has none.
    """

    takes_topic = True

    def __init__(self, spec: str, *, topic: str | None = None) -> None:
        super().__init__(spec)
        self._path = _storage_path(Path(spec))
        with self._reader() as reader:
            counts: dict[str, int] = {}
            for connection in reader.connections:
                if connection.msgtype in _DECODERS:
                    counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
        self._topic = self._choose(counts, topic)
        self._length = counts[self._topic]

    @classmethod
    def accepts(cls, spec: str) -> bool:
        path = Path(spec)
        if path.is_dir():
            return (path / "metadata.yaml").is_file() or any(_storage_files(path))
        return path.is_file() and path.suffix in (*_STORAGE_SUFFIXES, ".bag")

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return self._topic

    @property
    def description(self) -> str:
        return f"bag {self.spec}, topic {self._topic} ({self._length} images)"

    @property
    def known_length(self) -> int:
        return self._length

    def _choose(self, counts: dict[str, int], topic: str | None) -> str:
        if not counts:
            raise SourceError(f"the bag {self.spec} has no topic of type Image or CompressedImage")
        there = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        if topic is not None:
            name = topic if topic.startswith("/") else f"/{topic}"
            if name not in counts:
                raise SourceError(f"the bag {self.spec} has no image topic {topic}; it has {there}")
            return name
        filled = [name for name, count in counts.items() if count]
        if not filled:
            raise SourceError(f"the image topics of the bag {self.spec} hold no messages: {there}")
        if len(filled) > 1:
            raise SourceError(f"the bag {self.spec} has several image topics; name one as the topic: {there}")
        return filled[0]

    @contextmanager
    def _reader(self) -> Iterator[Reader]:
        rosbag2 = _import_rosbags()
        try:
            with rosbag2.Reader(self._path) as reader:
                yield reader
        except SourceError:
            raise
        except Exception as error:
            # The storage libraries raise many kinds of exceptions for a damaged file.
            raise SourceError(f"cannot read the bag {self.spec}: {_one_line(error)}") from error

    def _frames(self) -> Iterator[Frame]:
        from rosbags.typesys import Stores, get_typestore

        # Both image types are equal in all ROS 2 distributions: one type store reads every bag, also bags
        # with messages of other packages whose definitions are missing.
        typestore = get_typestore(Stores.ROS2_JAZZY)
        name = self._topic.strip("/").replace("/", "_")
        with self._reader() as reader:
            connections = [
                each for each in reader.connections if each.topic == self._topic and each.msgtype in _DECODERS
            ]
            for index, (connection, recorded_ns, raw) in enumerate(reader.messages(connections=connections)):
                frame_name = f"{name}#{index:06d}"
                try:
                    message: Any = typestore.deserialize_cdr(raw, connection.msgtype)
                    image_bgr = _DECODERS[connection.msgtype](message)
                except ImageMessageError as error:
                    self._skip(frame_name, index, error)
                    continue
                except Exception as error:
                    self._skip(frame_name, index, f"the message cannot be read: {_one_line(error)}")
                    continue
                stamp = message.header.stamp
                stamp_s = stamp.sec + stamp.nanosec * 1e-9 or recorded_ns * 1e-9
                yield Frame(image_bgr, frame_name, index, stamp_s)


def _storage_files(folder: Path) -> list[Path]:
    return sorted(path for suffix in _STORAGE_SUFFIXES for path in folder.glob(f"*{suffix}"))


def _storage_path(path: Path) -> Path:
    """Return the path for rosbags: the folder, or the only storage file of a folder without metadata."""
    if path.suffix == ".bag":
        target = path.with_suffix("")
        raise SourceError(f"{path} is a ROS 1 bag; convert it: rosbags-convert --src {path} --dst {target}")
    if not path.is_dir() or (path / "metadata.yaml").is_file():
        return path
    files = _storage_files(path)
    if len(files) != 1:
        raise SourceError(
            f"the bag {path} has no metadata.yaml and {len(files)} storage files; "
            f"name one of the files, or run: ros2 bag reindex {path}"
        )
    return files[0]


def _import_rosbags() -> Any:
    try:
        from rosbags import rosbag2
    except ImportError as error:
        raise SourceError(
            "reading ROS 2 bags needs the package rosbags: pip install 'smart_caption_ros[bags]'"
        ) from error
    return rosbag2


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
