"""The storage of ROS 2 bags (sqlite3 and mcap), read by rosbags; of a bag that was cut off, everything that is left.

A recorder that was killed, or a copy that was not finished, leaves a file without its end. Of an mcap file the records
before the cut are read, of a sqlite3 file the rows before the first missing page.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import quote

import yaml

from smart_caption_ros.sources.image_folder import natural_order
from smart_caption_ros.sources.source import SourceError

STORAGE_SUFFIXES = (".mcap", ".db3")

_MCAP_MAGIC = b"\x89MCAP0\r\n"


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes:
        name: its name.
        message_type: type of its messages, "sensor_msgs/msg/Image".
        count: number of messages that can be read.
        qos: quality of service that the publishers offered, as rosbags gives it.
    """

    name: str
    message_type: str
    count: int
    qos: tuple[Any, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class StoredMessage:
    """A message of a bag: topic, type, time of the recording in nanoseconds, and its serialised form (CDR)."""

    topic: str
    message_type: str
    recorded_ns: int
    data: bytes


class _Reader(Protocol):
    """What reads the whole bag, or one of its files."""

    topics: tuple[Topic, ...]

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]: ...


class BagStorage:
    """The messages of a bag: a bag's folder, or a single .mcap or .db3 file. A context manager.

    Args:
        path: the bag.
        salvage: whether to read what is left of a bag that was cut off.

    Raises:
        SourceError: on entering; the bag cannot be read, one sentence.
    """

    def __init__(self, path: Path, *, salvage: bool = False) -> None:
        self.path = path
        self.topics: tuple[Topic, ...] = ()
        self.damage = ""
        """Why some messages cannot be read, one clause; empty for a whole bag."""
        self._salvage = salvage
        self._storage = storage_path(path)
        self._readers: list[_Reader] = []
        self._stack = ExitStack()

    def __enter__(self) -> BagStorage:
        rosbag2 = import_rosbags()
        with self._stack:
            self._readers, self.damage = self._open(rosbag2)
            if self.damage and not (self._salvage and self._readers):
                raise SourceError(f"cannot read the bag {self.path}: {self.damage}")
            self.topics = _joined([topic for reader in self._readers for topic in reader.topics])
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics by the time of the recording; of damaged files in the order of the file.

        Where reading cannot continue, a bag that is salvaged ends there, and :attr:`damage` says why.

        Raises:
            SourceError: reading cannot continue.
        """
        for reader in self._readers:
            try:
                yield from reader.messages(topics)
            except Exception as error:
                if not self._salvage:
                    raise SourceError(f"cannot read the bag {self.path}: {one_line(error)}") from error
                self.damage = self.damage or one_line(error)

    @property
    def duration_s(self) -> float:
        """Time from the first message to the last one, of all topics; 0 for a bag that was cut off."""
        return 0.0 if self.damage else sum(reader.duration_s for reader in self._readers if isinstance(reader, _Whole))

    @property
    def files(self) -> list[Path]:
        """The storage files, in order."""
        return storage_files(self._storage) if self._storage.is_dir() else [self._storage]

    def _open(self, rosbag2: Any) -> tuple[list[_Reader], str]:
        """Return readers of all that can be read, and why not everything can be.

        The storage files count, and not what metadata.yaml says of them: files are renamed, and other tools write bags.
        """
        metadata = self._metadata()
        is_compressed = str(metadata.get("compression_mode") or "none").lower() != "none"  # its files, or each message
        readers: list[_Reader] = []
        damage = ""
        for path in [self._storage] if is_compressed else self.files:
            try:
                readers.append(_Whole(path, rosbag2, self._stack))
                continue
            except Exception as error:  # the storage libraries raise many kinds of exceptions for a damaged file
                damage = damage or one_line(error)
            with suppress(Exception):
                cut = (_CutMcap if path.suffix == ".mcap" else _CutSqlite)(path, self._stack)
                readers += [cut] if any(topic.count for topic in cut.topics) else []
        named = metadata.get("relative_file_paths") or ()
        if not is_compressed and len(named) > len(self.files):
            damage = damage or f"of the {len(named)} storage files in metadata.yaml, {len(self.files)} are there"
        return readers, damage

    def _metadata(self) -> Mapping[str, Any]:
        """Read metadata.yaml; empty where there is none that can be read."""
        try:
            content = yaml.safe_load((self._storage / "metadata.yaml").read_text(encoding="utf-8"))
            return dict(content["rosbag2_bagfile_information"])
        except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
            return {}


class _Whole:
    """A bag or a file that rosbags reads."""

    def __init__(self, path: Path, rosbag2: Any, stack: ExitStack) -> None:
        self._reader = rosbag2.Reader(path)
        if path.suffix == ".mcap":
            self._reader.storage.schemas = _Schemas()
        elif path.suffix == ".db3":
            self._reader.storage.path = Path(quote(os.fsencode(path)))  # rosbags makes it a part of a URI
        stack.enter_context(self._reader)
        self.topics = _topics(self._reader.connections)
        self.duration_s: float = self._reader.duration * 1e-9

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        connections = [connection for connection in _readable(self._reader.connections) if connection.topic in topics]
        if connections:  # rosbags takes none for all
            for connection, recorded_ns, data in self._reader.messages(connections=connections):
                yield StoredMessage(connection.topic, connection.msgtype, recorded_ns, bytes(data))


class _CutMcap:
    """The whole records of an mcap file without its end."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        from rosbags.rosbag2.storage_mcap import McapReader

        # Not opened by itself, because it would look for the end of the file.
        self._reader = McapReader(path)
        self._reader.schemas = _Schemas()
        self._reader.bio = file = stack.enter_context(path.open("rb"))
        self._reader.data_start = len(_MCAP_MAGIC)
        self._reader.data_end = _end_of_records(file)
        self._reader.meta_scan()
        counts = self._reader.statistics.channel_message_counts if self._reader.statistics else {}
        self._connections = [
            connection._replace(msgcount=counts.get(connection.id, 0)) for connection in self._reader.connections
        ]
        self.topics = _topics(self._connections)

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        connections = [connection for connection in _readable(self._connections) if connection.topic in topics]
        for connection, recorded_ns, data in self._reader.messages_scan(connections):
            yield StoredMessage(connection.topic, connection.msgtype, recorded_ns, data)


def _end_of_records(file: BinaryIO) -> int:
    """Return where the last whole record of an mcap file ends, the end of the data and later records left out."""
    size = file.seek(0, os.SEEK_END)
    place = file.seek(len(_MCAP_MAGIC))
    while len(head := file.read(9)) == 9:
        (length,) = struct.unpack("<Q", head[1:])
        if head[0] in (0x02, 0x0F) or place + 9 + length > size:
            break
        place = file.seek(place + 9 + length)
    return place


class _CutSqlite:
    """The rows of a sqlite3 file up to the first page that is missing."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        stack.callback(self._database.close)
        self._database.execute("PRAGMA writable_schema=ON")  # SQLite refuses a file shorter than its header says
        rows = self._database.execute("SELECT id, name, type FROM topics ORDER BY id").fetchall()
        self._names = {number: (name, message_type) for number, name, message_type in rows}
        counts = dict.fromkeys(self._names, 0)
        for number, _recorded_ns, _data in self._rows():
            counts[number] += 1
        self.topics = tuple(Topic(*self._names[number], count) for number, count in counts.items())

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        for number, recorded_ns, data in self._rows():
            name, message_type = self._names[number]
            if name in topics:
                yield StoredMessage(name, message_type, recorded_ns, data)

    def _rows(self) -> Iterator[tuple[int, int, bytes]]:
        # NOT INDEXED: the pages of the index are scattered over the whole file.
        rows = self._database.execute("SELECT topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY rowid")
        with suppress(sqlite3.DatabaseError):
            yield from (row for row in rows if row[0] in self._names)


class _Schemas(dict[int, Any]):
    """The schemas of an mcap file by id; rosbags fails at encodings that it does not know, such as jsonschema."""

    def __setitem__(self, key: int, schema: Any) -> None:
        known = schema.encoding in ("", "ros2msg", "ros2idl", "omgidl")
        super().__setitem__(key, schema if known else schema._replace(encoding="", data=""))


def _readable(connections: Collection[Any]) -> list[Any]:
    """Leave out connections whose messages are not CDR but, for example, JSON."""
    return [connection for connection in connections if connection.ext.serialization_format == "cdr"]


def _topics(connections: Collection[Any]) -> tuple[Topic, ...]:
    return tuple(
        Topic(connection.topic, connection.msgtype, connection.msgcount, tuple(connection.ext.offered_qos_profiles))
        for connection in _readable(connections)
    )


def _joined(topics: list[Topic]) -> tuple[Topic, ...]:
    """Add up the counts of topics with several publishers, or in several files."""
    joined: dict[tuple[str, str], Topic] = {}
    for topic in topics:
        before = joined.get((topic.name, topic.message_type))
        count = topic.count + (before.count if before else 0)
        joined[topic.name, topic.message_type] = Topic(topic.name, topic.message_type, count, topic.qos)
    return tuple(joined.values())


def is_bag(path: Path) -> bool:
    """Whether a path is that of a bag, a ROS 1 bag included, which :func:`storage_path` refuses."""
    if path.is_dir():
        return (path / "metadata.yaml").is_file() or bool(storage_files(path))
    return path.is_file() and path.suffix in (*STORAGE_SUFFIXES, ".bag")


def storage_files(folder: Path) -> list[Path]:
    """Return the storage files of a folder, run_2.mcap before run_10.mcap."""
    return sorted((path for suffix in STORAGE_SUFFIXES for path in folder.glob(f"*{suffix}")), key=natural_order)


def storage_path(path: Path) -> Path:
    """Return the path for rosbags: the folder, or the only storage file of a folder without metadata.

    Raises:
        SourceError: it is a ROS 1 bag, or a folder without metadata and with several files.
    """
    if path.suffix == ".bag":
        target = path.with_suffix("")
        raise SourceError(f"{path} is a ROS 1 bag; convert it: rosbags-convert --src {path} --dst {target}")
    if not path.is_dir() or (path / "metadata.yaml").is_file():
        return path
    files = storage_files(path)
    if len(files) != 1:
        raise SourceError(
            f"the bag {path} has no metadata.yaml and {len(files)} storage files; "
            f"name one of the files, or run: ros2 bag reindex {path}"
        )
    return files[0]


def import_rosbags() -> Any:
    """Import rosbags.rosbag2.

    Raises:
        SourceError: it is not installed; says what to install.
    """
    try:
        from rosbags import rosbag2
    except ImportError as error:
        raise SourceError(
            "reading ROS 2 bags needs the package rosbags: pip install 'smart_caption_ros[bags]'"
        ) from error
    return rosbag2


def one_line(error: Exception) -> str:
    """Return the message of an exception on one line."""
    return " ".join(str(error).split()) or type(error).__name__
