"""The feature store: a folder of arrays. They are read by memory map, so a store may be larger than memory.

``manifest.json`` holds the source of the features and their width. The images are in shards of three files:

    shard-00000.tokens.npy   (rows, width) float16
    shard-00000.boxes.npy    (rows, 4) float32, xyxy pixels of the photograph
    shard-00000.json         for each image its id, number of rows, width and height of the photograph in pixels

Rows are in the order of the index. The index of a shard is written last, and every file is written under a temporary
name and renamed, so a killed writer leaves complete shards and temporary files, which the next writer removes.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from smart_caption_ros.files import UNFINISHED, replaced_atomically, write_text_atomically
from training.data.json_files import read_json
from training.data.regions import Regions, Size, checked_regions
from training.errors import DataError

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SHARD_IMAGES = 500


@dataclass(frozen=True)
class _Entry:
    """Place of an image's rows, and the size of the photograph."""

    shard: int
    start: int
    rows: int
    image_size: Size


class FeatureStore:
    """A store that is open for reading, a :class:`training.data.regions.RegionFeatures`."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            DataError: the folder is not a store, or its manifest or an index is malformed.
        """
        self.folder = folder
        if not (folder / MANIFEST).exists():
            raise DataError(f"{folder / MANIFEST}: no such file; `python -m training.features` makes a feature store")
        manifest = _read_object(folder / MANIFEST)
        try:
            version, self.width, self.source = manifest["format_version"], manifest["token_width"], manifest["source"]
        except KeyError as error:
            raise DataError(f"{folder / MANIFEST}: it lacks {error}") from None
        if version != FORMAT_VERSION:
            raise DataError(f"{folder / MANIFEST}: format version {version!r}; this version reads {FORMAT_VERSION}")
        if not isinstance(self.width, int) or self.width < 1:
            raise DataError(f"{folder / MANIFEST}: token_width is {self.width!r}")
        self._entries: dict[str, _Entry] = {}
        self._shards: list[tuple[np.ndarray, np.ndarray]] = []
        for number, index in enumerate(sorted(folder.glob("shard-*.json"))):
            if index != _shard(folder, number, "json"):
                raise DataError(f"{_shard(folder, number, 'json')}: no such file, though later shards are there")
            self._open_shard(index)

    def _open_shard(self, index: Path) -> None:
        number, start = len(self._shards), 0
        for entry in _read_object(index).get("images", ()):
            try:
                image, rows, size = entry["id"], entry["rows"], (entry["width"], entry["height"])
            except (KeyError, TypeError):
                raise DataError(f"{index}: an entry lacks id, rows, width or height") from None
            if not isinstance(image, str) or not isinstance(rows, int) or rows < 1:
                raise DataError(f"{index}, image {image}: {rows!r} rows")
            if not all(isinstance(side, int) and side >= 1 for side in size):
                raise DataError(f"{index}, image {image}: the photograph's size is {size[0]!r} x {size[1]!r}")
            if image in self._entries:
                raise DataError(f"{index}, image {image}: it is in the store twice")
            self._entries[image] = _Entry(number, start, rows, size)
            start += rows
        tokens = _map(_shard(self.folder, number, "tokens.npy"), (start, self.width), np.float16)
        boxes = _map(_shard(self.folder, number, "boxes.npy"), (start, 4), np.float32)
        self._shards.append((tokens, boxes))

    def __contains__(self, image: str) -> bool:
        return image in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, image: str) -> Regions:
        """Read the rows of an image.

        Raises:
            DataError: the image is missing, or its features are not finite.
        """
        if (entry := self._entries.get(image)) is None:
            example = f"; its ids look like {next(iter(self._entries))}" if self._entries else "; it is empty"
            raise DataError(f"{self.folder}, image {image}: it has no features{example}")
        rows = slice(entry.start, entry.start + entry.rows)
        tokens, boxes = self._shards[entry.shard]
        where = f"{_shard(self.folder, entry.shard, 'tokens.npy')}, image {image}"
        return checked_regions(where, self.width, tokens[rows], boxes[rows], image_size=entry.image_size)


class StoreWriter:
    """Adds images to a new or an existing store; use it in a ``with`` statement."""

    def __init__(
        self, folder: Path, source: Mapping[str, Any], token_width: int, shard_images: int = SHARD_IMAGES
    ) -> None:
        """
        Args:
            folder: of the store; made where it does not exist.
            source: JSON values that identify what makes the features; an existing store must have the same.
            token_width: width of a feature.
            shard_images: images in a shard. If the process is killed, the shard that is not yet written is lost.

        Raises:
            DataError: the folder holds other files or features of another source, or another process writes to it.
        """
        self.folder, self.token_width, self.shard_images = folder, token_width, shard_images
        manifest = {"format_version": FORMAT_VERSION, "token_width": token_width, "source": dict(source)}
        if not folder.exists():
            folder.mkdir(parents=True)
        elif not (folder / MANIFEST).exists() and any(folder.iterdir()):
            raise DataError(f"{folder} exists and is not a feature store; it is left alone")
        self._lock = _lock(folder)
        try:
            if not (folder / MANIFEST).exists():
                _write_json(folder / MANIFEST, manifest)
            existing = FeatureStore(folder)
            if (existing.source, existing.width) != (manifest["source"], token_width):
                raise DataError(f"{folder} holds features of another source, {existing.source}; give another folder")
            # The lock excludes another writer, so these files are a killed writer's.
            for unfinished in folder.glob(f"*{UNFINISHED}"):
                unfinished.unlink()
        except BaseException:
            os.close(self._lock)
            raise
        self._known = set(existing._entries)
        self._next_shard = len(existing._shards)
        self._images: list[dict[str, Any]] = []
        self._tokens: list[np.ndarray] = []
        self._boxes: list[np.ndarray] = []

    def __contains__(self, image: str) -> bool:
        return image in self._known

    def add(self, image: str, tokens: np.ndarray, boxes_xyxy: np.ndarray, width: int, height: int) -> None:
        """Add an image; it is on disk after the next :meth:`flush`.

        Args:
            tokens: (n, token_width), n at least 1.
            boxes_xyxy: (n, 4), pixels of the photograph.
            width: of the photograph, pixels.
            height: of the photograph, pixels.

        Raises:
            DataError: the image is in the store already, or its features are malformed or beyond float16.
        """
        where = f"{self.folder}, image {image}"
        if image in self._known:
            raise DataError(f"{where}: it is in the store already")
        with np.errstate(over="ignore"):  # checked_regions refuses infinity
            halves = np.asarray(tokens).astype(np.float16)
        checked_regions(where, self.token_width, halves, boxes_xyxy, image_size=(width, height))
        self._known.add(image)
        self._images.append({"id": image, "rows": len(halves), "width": width, "height": height})
        self._tokens.append(halves)
        self._boxes.append(np.asarray(boxes_xyxy, np.float32))
        if len(self._images) >= self.shard_images:
            self.flush()

    def flush(self) -> None:
        """Write the images that were added since the last call as a shard."""
        if not self._images:
            return
        for kind, arrays in (("tokens.npy", self._tokens), ("boxes.npy", self._boxes)):
            path = _shard(self.folder, self._next_shard, kind)
            with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
                np.save(stream, np.concatenate(arrays))
        _write_json(_shard(self.folder, self._next_shard, "json"), {"images": self._images})
        self._next_shard += 1
        self._images, self._tokens, self._boxes = [], [], []

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Only complete images were added, so they are kept after an error as well.
        try:
            self.flush()
        finally:
            os.close(self._lock)


def _lock(folder: Path) -> int:
    """Open a descriptor that excludes other writers until it is closed or its process ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise DataError(f"{folder} is being written by another process") from None
    return descriptor


def _shard(folder: Path, number: int, kind: str) -> Path:
    return folder / f"shard-{number:05d}.{kind}"


def _map(path: Path, shape: tuple[int, int], dtype: type) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file, though its index is there") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is cut short or no array ({error})") from None
    if array.shape != shape or array.dtype != dtype:
        raise DataError(f"{path}: {array.dtype} {array.shape} instead of {np.dtype(dtype)} {shape}")
    return array


def _read_object(path: Path) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected an object")
    return document


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    write_text_atomically(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
