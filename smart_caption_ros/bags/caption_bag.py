"""Caption a bag into a new bag, one .mcap or .db3 file that is written atomically."""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from smart_caption_ros.bags.cameras import BagCamera, choose_cameras
from smart_caption_ros.bags.message_captioner import MessageCaptioner
from smart_caption_ros.bags.message_types import CAPTION, STRING, typestore
from smart_caption_ros.files import OutputError, replaced_atomically
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.bag import image_messages
from smart_caption_ros.sources.bag_storage import BagStorage, StoredMessage, import_rosbags
from smart_caption_ros.text import counted

_PLUGINS = {".mcap": "MCAP", ".db3": "SQLITE3"}


@dataclass(frozen=True)
class BagOptions:
    """How a bag is captioned."""

    topics: tuple[str, ...] = ()
    every: int = 1
    with_images: bool = False
    force: bool = False


@dataclass(frozen=True)
class BagReport:
    """Result of captioning a bag.

    Attributes:
        images: number of images that were selected, unreadable ones included.
        failed: number of those images that have no caption because of a problem.
        first_problem: the first of these problems; empty if there is none.
        recording_s: time of the recording from the first selected image to the last one.
        work_s: time that captioning took, without loading the model.
        damage: one sentence about a bag that was cut off; empty for a whole one.
        left_out: one sentence for each image topic that was left out.
    """

    output: Path
    caption_topics: tuple[str, ...]
    images: int
    failed: int
    first_problem: str
    recording_s: float
    work_s: float
    damage: str
    left_out: tuple[str, ...]

    @property
    def speed(self) -> float:
        """Seconds of the recording per second of work."""
        return self.recording_s / self.work_s

    def sentences(self) -> list[str]:
        """Return the report for a person."""
        captioned = f"{self.images - self.failed} of " if self.failed else ""
        cameras = counted(len(self.caption_topics), "camera")
        result = (
            f"{self.output}: captioned {captioned}{counted(self.images, 'image')} of {cameras} "
            f"({', '.join(self.caption_topics)}); {self.recording_s:.1f} s of recording in {self.work_s:.1f} s, "
            f"{self.speed:.2f} times real time"
        )
        problem = f"{counted(self.failed, 'image')} without a caption; the first: {self.first_problem}"
        return [*self.left_out, result, *[problem] * bool(self.failed), *[self.damage] * bool(self.damage)]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "output": str(self.output), "speed": self.speed}


def check_bag_output(output: Path, *, force: bool) -> None:
    """Raise SourceError for an output that does not end in .mcap or .db3, or that exists, unless ``force`` is set."""
    if output.suffix not in _PLUGINS:
        raise SourceError(f"{output} must end in {' or '.join(_PLUGINS)}")
    if output.exists() and not force:
        raise SourceError(f"{output} exists: name another output, or replace it with --force")


def caption_bag(
    bag: Path,
    output: Path,
    captioner: MessageCaptioner,
    options: BagOptions,
    progress: Callable[[int], object] = lambda images: None,
) -> BagReport:
    """Caption the images of a bag into a new bag, each with the time and the header of its image.

    Args:
        progress: called with the number of images that were processed since the last call.

    Raises:
        SourceError, OutputError: the bag cannot be read or holds no such images, or the output may not be written.
    """
    check_bag_output(output, force=options.force)
    started_s = time.monotonic()
    with BagStorage(bag, salvage=True) as storage:
        if output.parent.resolve() == bag.resolve():
            raise SourceError(f"{output} would become a part of the bag: name another output")
        cameras, left_out = choose_cameras(storage, options.topics)
        counts = [0] * len(cameras)
        recorded_ns: list[int] = []
        problems: list[str] = []
        with _new_bag(output, storage.files) as writer:
            outputs = _Connections(writer, storage, cameras, with_images=options.with_images)
            numbers = {camera.image_topic: number for number, camera in enumerate(cameras)}
            for stored in image_messages(storage, numbers):
                number = numbers[stored.topic]
                outputs.copy(stored)
                if counts[number] % options.every == 0:
                    recorded_ns.append(stored.recorded_ns)
                    message, text, problem = captioner.caption(stored, cameras[number].name)
                    outputs.write(number, stored.recorded_ns, message, text)
                    problems += [problem] if problem else []
                counts[number] += 1
                progress(1)
        damage = _damage(storage, sum(counts))
    return BagReport(
        output,
        tuple(camera.caption_topic for camera in cameras),
        images=len(recorded_ns),
        failed=len(problems),
        first_problem=problems[0] if problems else "",
        recording_s=(max(recorded_ns) - min(recorded_ns)) * 1e-9 if recorded_ns else 0.0,
        work_s=time.monotonic() - started_s,
        damage=damage,
        left_out=tuple(left_out),
    )


class _Connections:
    """The topics of a bag of captions."""

    def __init__(self, writer: Any, images: BagStorage, cameras: Sequence[BagCamera], *, with_images: bool) -> None:
        """``images``: the open bag whose images are captioned."""
        self._writer = writer
        self._captions = [self._add(camera.caption_topic, CAPTION) for camera in cameras]
        self._texts = [self._add(f"{camera.caption_topic}/text", STRING) for camera in cameras]
        copied = {camera.image_topic for camera in cameras} if with_images else ()
        self._copies = {
            (topic.name, topic.message_type): self._add(topic.name, topic.message_type, topic.qos)
            for topic in images.topics
            if topic.name in copied
        }

    def _add(self, topic: str, message_type: str, qos: Sequence[Any] = ()) -> Any:
        return self._writer.add_connection(topic, message_type, typestore=typestore(), offered_qos_profiles=qos)

    def copy(self, stored: StoredMessage) -> None:
        if connection := self._copies.get((stored.topic, stored.message_type)):
            self._writer.write(connection, stored.recorded_ns, stored.data)

    def write(self, camera: int, recorded_ns: int, message: bytes | None, text: str | None) -> None:
        if message is not None:
            self._writer.write(self._captions[camera], recorded_ns, message)
        if text is not None:
            store = typestore()
            data = bytes(store.serialize_cdr(store.types[STRING](data=text), STRING))
            self._writer.write(self._texts[camera], recorded_ns, data)


@contextmanager
def _new_bag(path: Path, inputs: Sequence[Path]) -> Iterator[Any]:
    """Yield the writer of a new bag, whose only file is moved to ``path`` at the end."""
    rosbag2 = import_rosbags()
    plugin = rosbag2.StoragePlugin[_PLUGINS[path.suffix]]
    try:
        with (
            replaced_atomically(path, inputs) as unfinished,
            tempfile.TemporaryDirectory(prefix=f"{unfinished.name}.", dir=path.parent) as folder,
        ):
            # The file stores its own name: with a fixed name, equal captions give equal files.
            bag = Path(folder, "captions")
            writer = rosbag2.Writer(bag, version=9, storage_plugin=plugin)
            if path.suffix == ".db3":  # rosbags makes the path a part of a URI
                open_storage = writer.STORAGE_PLUGINS[plugin]
                writer.STORAGE_PLUGINS = {plugin: lambda bag, mode: open_storage(Path(quote(os.fsencode(bag))), mode)}
            else:
                writer.set_compression(rosbag2.CompressionMode.STORAGE, rosbag2.CompressionFormat.ZSTD)
            with writer:
                yield writer
            (bag / f"{bag.name}{path.suffix}").replace(unfinished)
    except OutputError:
        raise
    except (OSError, sqlite3.Error, rosbag2.WriterError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"{path} cannot be written: {reason}") from error


def _damage(storage: BagStorage, images: int) -> str:
    if not storage.damage:
        return ""
    readable = sum(topic.count for topic in storage.topics)
    return (
        f"{storage.path.name} is cut off or damaged ({storage.damage}): {readable} of its messages can be read, "
        f"{images} of them images of these topics"
    )
