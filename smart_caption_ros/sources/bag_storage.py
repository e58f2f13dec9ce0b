"""Read the storage of ROS 2 bags (sqlite3 and mcap) with rosbags; of a bag that was cut off, everything that is left.

A killed recorder or an unfinished copy leaves a file without its end. Of such an mcap file the records before the cut
are read, of a sqlite3 file the rows before the first missing page.
"""

import os
import sqlite3
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO
from urllib.parse import quote

import yaml

from smart_caption_ros.sources.image_folder import natural_order
from smart_caption_ros.sources.source import SourceError
from smart_caption_ros.text import error_line

STORAGE_SUFFIXES = (".mcap", ".db3")

_MCAP_MAGIC = b"\x89MCAP0\r\n"


@dataclass(frozen=True)
class BagTopic:
    """The messages of one type on a topic of a bag, of all its publishers and files.

    Attributes:
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


class BagStorage:
    """The messages of a bag: a bag's folder, or a single .mcap or .db3 file. A context manager.

    Args:
        salvage: whether to read what is left of a bag that was cut off, instead of raising SourceError.

    Raises:
        SourceError: on entering; the bag cannot be read, one sentence.
    """

    def __init__(self, path: Path, *, salvage: bool = False) -> None:
        self.path = path
        self.topics: tuple[BagTopic, ...] = ()
        self.damage = ""
        """Why some messages cannot be read, one clause; empty for a whole bag."""
        self._salvage = salvage
        self._storage = storage_path(path)
        self._readers: list[_Reader] = []
        self._stack = ExitStack()

    def __enter__(self) -> "BagStorage":
        rosbag2 = import_rosbags()
        with self._stack:
            self._readers, self.damage = self._open(rosbag2)
            if self.damage and not (self._salvage and self._readers):
                raise SourceError(f"cannot read the bag {self.path}: {self.damage}")
            topics: dict[tuple[str, str], BagTopic] = {}
            for topic in (topic for reader in self._readers for topic in reader.topics):
                before = topics.get((topic.name, topic.message_type))
                topics[topic.name, topic.message_type] = (
                    topic if before is None else replace(topic, count=topic.count + before.count)
                )
            self.topics = tuple(topics.values())
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        """Yield the messages of some topics, sorted by recording time; those of damaged files in the order of the file.

        If reading cannot continue, SourceError is raised; with ``salvage`` the file ends there, and :attr:`damage` says
        why.
        """
        for reader in self._readers:
            try:
                yield from reader.messages(topics)
            except Exception as error:
                if not self._salvage:
                    raise SourceError(f"cannot read the bag {self.path}: {error_line(error)}") from error
                self.damage = self.damage or error_line(error)

    @property
    def duration_s(self) -> float:
        """Time from the first message to the last one, of all topics; 0 for a bag that was cut off."""
        return 0.0 if self.damage else sum(reader.duration_s for reader in self._readers)

    @property
    def files(self) -> list[Path]:
        return storage_files(self._storage) if self._storage.is_dir() else [self._storage]

    def _open(self, rosbag2: Any) -> "tuple[list[_Reader], str]":
        """Return readers of everything that can be read, and the reason why something cannot; empty if all can.

        The storage files on the disk are read and not those named in metadata.yaml, because files are renamed and other
        tools write bags.
        """
        metadata = self._metadata()
        is_compressed = str(metadata.get("compression_mode") or "none").lower() != "none"  # its files, or each message
        readers: list[_Reader] = []
        damage = ""
        for path in [self._storage] if is_compressed else self.files:
            try:
                readers.append(_open_whole(path, rosbag2, self._stack))
                continue
            except Exception as error:  # the storage libraries raise many kinds of exceptions for a damaged file
                damage = damage or error_line(error)
            with suppress(Exception):
                cut = (_open_cut_mcap if path.suffix == ".mcap" else _open_cut_sqlite)(path, self._stack)
                readers += [cut] if any(topic.count for topic in cut.topics) else []
        named = metadata.get("relative_file_paths") or ()
        if not is_compressed and len(named) > len(self.files):
            damage = damage or f"of the {len(named)} storage files in metadata.yaml, {len(self.files)} are there"
        return readers, damage

    def _metadata(self) -> Mapping[str, Any]:
        try:
            content = yaml.safe_load((self._storage / "metadata.yaml").read_text(encoding="utf-8"))
            return dict(content["rosbag2_bagfile_information"])
        except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError):
            return {}


class _Reader:
    """Connections of rosbags' readers, and the messages on them.

    Args:
        connections: connections, with the number of messages that can be read. Those whose messages are not in CDR,
            but for example in JSON, are left out.
        messages: yields connection, recording time and data of the messages on some connections.
    """

    def __init__(self, connections: Collection[Any], messages: Callable[..., Any], duration_s: float = 0.0) -> None:
        self._connections = [item for item in connections if item.ext.serialization_format == "cdr"]
        self._messages = messages
        self.duration_s = duration_s
        self.topics = [
            BagTopic(item.topic, item.msgtype, item.msgcount, tuple(item.ext.offered_qos_profiles))
            for item in self._connections
        ]

    def messages(self, topics: Collection[str]) -> Iterator[StoredMessage]:
        connections = [item for item in self._connections if item.topic in topics]
        if connections:  # rosbags takes none for all
            for item, recorded_ns, data in self._messages(connections):
                yield StoredMessage(item.topic, item.msgtype, recorded_ns, bytes(data))


def _open_whole(path: Path, rosbag2: Any, stack: ExitStack) -> _Reader:
    """Open a compressed bag or a file."""
    reader = rosbag2.Reader(path)
    if path.suffix == ".mcap":
        reader.storage.schemas = _Schemas()
    elif path.suffix == ".db3":
        reader.storage.path = Path(quote(os.fsencode(path)))  # rosbags makes it a part of a URI
    stack.enter_context(reader)
    return _Reader(reader.connections, reader.messages, reader.duration * 1e-9)


def _open_cut_mcap(path: Path, stack: ExitStack) -> _Reader:
    """Open the whole records of an mcap file without its end."""
    from rosbags.rosbag2.storage_mcap import McapReader

    # Not opened by itself, because it would look for the end of the file.
    reader = McapReader(path)
    reader.schemas = _Schemas()
    reader.bio = file = stack.enter_context(path.open("rb"))
    reader.data_start = len(_MCAP_MAGIC)
    reader.data_end = _end_of_records(file)
    reader.meta_scan()
    counts = reader.statistics.channel_message_counts if reader.statistics else {}
    connections = [item._replace(msgcount=counts.get(item.id, 0)) for item in reader.connections]
    return _Reader(connections, reader.messages_scan)


def _end_of_records(file: BinaryIO) -> int:
    """Return the offset at which the last whole record before the end of an mcap file's data ends."""
    size = file.seek(0, os.SEEK_END)
    place = file.seek(len(_MCAP_MAGIC))
    while len(head := file.read(9)) == 9:
        (length,) = struct.unpack("<Q", head[1:])
        if head[0] in (0x02, 0x0F) or place + 9 + length > size:
            break
        place = file.seek(place + 9 + length)
    return place


def _open_cut_sqlite(path: Path, stack: ExitStack) -> _Reader:
    """Open the rows of a sqlite3 file up to the first page that is missing."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    stack.callback(database.close)
    database.execute("PRAGMA writable_schema=ON")  # SQLite refuses a file shorter than its header says
    topics = {
        number: SimpleNamespace(
            topic=name,
            msgtype=message_type,
            msgcount=0,
            ext=SimpleNamespace(serialization_format=serialization, offered_qos_profiles=()),
        )
        for number, name, message_type, serialization in database.execute(
            "SELECT id, name, type, serialization_format FROM topics ORDER BY id"
        )
    }

    def messages(connections: Collection[Any]) -> Iterator[tuple[Any, int, bytes]]:
        # NOT INDEXED: the pages of the index are scattered over the whole file.
        rows = database.execute("SELECT topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY rowid")
        with suppress(sqlite3.DatabaseError):
            yield from ((topics[number], ns, data) for number, ns, data in rows if topics.get(number) in connections)

    for topic, _, _ in messages(topics.values()):
        topic.msgcount += 1
    return _Reader(topics.values(), messages)


class _Schemas(dict[int, Any]):
    """The schemas of an mcap file by id; blanks unknown encodings such as jsonschema, at which rosbags fails."""

    def __setitem__(self, key: int, schema: Any) -> None:
        known = schema.encoding in ("", "ros2msg", "ros2idl", "omgidl")
        super().__setitem__(key, schema if known else schema._replace(encoding="", data=""))


def is_bag(path: Path) -> bool:
    """Return whether a path is a bag; also for a ROS 1 bag, which :func:`storage_path` refuses."""
    if path.is_dir():
        return (path / "metadata.yaml").is_file() or bool(storage_files(path))
    return path.is_file() and path.suffix in (*STORAGE_SUFFIXES, ".bag")


def storage_files(folder: Path) -> list[Path]:
    """Return the storage files of a folder, run_2.mcap before run_10.mcap."""
    return sorted(
        (path for path in folder.iterdir() if path.suffix in STORAGE_SUFFIXES and path.name[0] != "."),
        key=natural_order,
    )


def storage_path(path: Path) -> Path:
    """Return the path for rosbags: the folder, or the only storage file of a folder without metadata."""
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
    """Import rosbags.rosbag2; raises SourceError where it is not installed."""
    try:
        from rosbags import rosbag2
    except ImportError as error:
        raise SourceError(
            "reading ROS 2 bags needs the package rosbags: pip install 'smart_caption_ros[bags]'"
        ) from error
    return rosbag2
