"""Write the captions of a bag as a bag: one .mcap or .db3 file, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from smart_caption_ros.bags.cameras import Camera, Thinning
from smart_caption_ros.bags.journal import Entry, Journal
from smart_caption_ros.bags.message_types import CAPTION, STRING, typestore
from smart_caption_ros.files import UNFINISHED
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.bag_storage import BagStorage, import_rosbags

PROVENANCE_TOPIC = "/smart_caption/provenance"
"""A std_msgs/String with JSON: what the captions were made from, by and how."""

_PLUGINS = {".mcap": "MCAP", ".db3": "SQLITE3"}
OUTPUT_SUFFIXES = tuple(_PLUGINS)


def read_provenance(path: Path) -> dict[str, Any]:
    """Read what the captions in a bag were made from.

    Raises:
        SourceError: the file is no bag of captions.
    """
    try:
        with BagStorage(path) as storage:
            for stored in storage.messages([PROVENANCE_TOPIC]):
                message: Any = typestore().deserialize_cdr(stored.data, STRING)
                return dict(json.loads(message.data))
    except (SourceError, ValueError):
        pass
    raise SourceError(f"{path} exists, and is not a bag of captions: name another output, or remove it") from None


def write_captioned_bag(
    path: Path, cameras: Sequence[Camera], journal: Journal, provenance: Mapping[str, Any], images: BagStorage | None
) -> None:
    """Write the captions of a journal in the order of the recording, each with the time and the header of its image.

    Args:
        path: the .mcap or .db3 file; replaced.
        cameras: the cameras, in the order of their numbers in the journal.
        journal: the captions.
        provenance: what they were made from, as JSON values.
        images: the open bag whose images are copied in; None leaves the images out.

    Raises:
        SourceError: the file cannot be written, for example because the disk is full.
    """
    with _new_bag(path, journal) as writer:
        store = typestore()
        start_ns = next((entry.recorded_ns for _, entry in journal.entries()), 0)
        connection = writer.add_connection(PROVENANCE_TOPIC, STRING, typestore=store)
        writer.write(connection, start_ns, _string(json.dumps(provenance)))
        captions = [writer.add_connection(camera.caption_topic, CAPTION, typestore=store) for camera in cameras]
        texts = [writer.add_connection(f"{camera.caption_topic}/text", STRING, typestore=store) for camera in cameras]

        def write(camera: int, entry: Entry) -> None:
            if entry.message is not None:
                writer.write(captions[camera], entry.recorded_ns, entry.message)
            if entry.text is not None:
                writer.write(texts[camera], entry.recorded_ns, _string(entry.text))

        if images is None:
            for camera, entry in journal.entries():
                write(camera, entry)
            return
        qos = {topic.name: topic.qos for topic in images.topics}
        numbers = {camera.image_topic: number for number, camera in enumerate(cameras)}
        copies = [
            writer.add_connection(
                camera.image_topic,
                camera.message_type,
                typestore=store,
                offered_qos_profiles=qos[camera.image_topic],
            )
            for camera in cameras
        ]
        counts = [0] * len(cameras)
        for stored in images.messages(list(numbers)):
            camera = numbers[stored.topic]
            writer.write(copies[camera], stored.recorded_ns, stored.data)
            found = journal.get(camera, counts[camera])
            counts[camera] += 1
            if found is not None:
                write(camera, found)


@contextmanager
def _new_bag(path: Path, journal: Journal) -> Iterator[Any]:
    """Yield the writer of a new bag; at the end its only file becomes ``path``."""
    rosbag2 = import_rosbags()
    folder = path.with_name(path.name + UNFINISHED)  # the journal's lock keeps other processes away
    shutil.rmtree(folder, ignore_errors=True)
    try:
        plugin = rosbag2.StoragePlugin[_PLUGINS[path.suffix]]
        # A name that is always the same, because the bag says it, and equal captions are to be equal files.
        bag = folder / "captions"
        writer = rosbag2.Writer(bag, version=9, storage_plugin=plugin)
        if path.suffix == ".db3":  # rosbags makes the path a part of a URI
            open_storage = writer.STORAGE_PLUGINS[plugin]
            writer.STORAGE_PLUGINS = {plugin: lambda bag, mode: open_storage(Path(quote(os.fsencode(bag))), mode)}
        if path.suffix == ".mcap":
            writer.set_compression(rosbag2.CompressionMode.STORAGE, rosbag2.CompressionFormat.ZSTD)
        with writer:
            yield writer
        (bag / f"{bag.name}{path.suffix}").replace(path)
    except (OSError, rosbag2.WriterError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(
            f"{path} cannot be written: {reason}; the captions are kept in {journal.path}, from which the same command "
            "goes on"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _string(text: str) -> bytes:
    store = typestore()
    return bytes(store.serialize_cdr(store.types[STRING](data=text), STRING))


def settings_of(
    storage: BagStorage, cameras: Sequence[Camera], thinning: Thinning, *, with_images: bool, model: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the captions of a bag depend on, as JSON values; the place of the bag is not part of it."""
    return {
        **model,
        "bag": [storage.path.name, *([file.name, file.stat().st_size] for file in storage.files)],
        "topics": [camera.image_topic for camera in cameras],
        "every": thinning.every,
        "rate_hz": thinning.rate_hz,
        "with_images": with_images,
    }
