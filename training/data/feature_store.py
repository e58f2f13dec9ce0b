"""Our own store of features: a folder of arrays that are read by memory map, however large they are.

``manifest.json`` says what made the features and how wide they are. The images follow in shards of three files:

    shard-00000.tokens.npy   (rows, width) float16
    shard-00000.boxes.npy    (rows, 4) float32, xyxy pixels of the photograph
    shard-00000.json         which images they are: id, how many rows, width and height of the photograph

An image's rows follow each other in the order of the index. A shard counts once its index is there, which is written
last; every file is written under another name and renamed. A kill at any moment leaves whole shards, and files under
other names that the next writer removes.
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
from training.data.region_features import Regions, checked_regions
from training.errors import DataError

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
SHARD_IMAGES = 500


@dataclass(frozen=True)
class _Entry:
    """Where an image is."""

    shard: int
    start: int
    rows: int


class FeatureStore:
    """A store, open for reading; behaves as any other :class:`training.data.region_features.RegionFeatures`."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            DataError: the folder is no store, or its manifest or an index is malformed.
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
                image, rows = entry["id"], entry["rows"]
            except (KeyError, TypeError):
                raise DataError(f"{index}: an entry lacks id or rows") from None
            if not isinstance(image, str) or not isinstance(rows, int) or rows < 1:
                raise DataError(f"{index}, image {image}: {rows!r} rows")
            if image in self._entries:
                raise DataError(f"{index}, image {image}: it is in the store twice")
            self._entries[image] = _Entry(number, start, rows)
            start += rows
        tokens = _map(_shard(self.folder, number, "tokens.npy"), (start, self.width), np.float16)
        boxes = _map(_shard(self.folder, number, "boxes.npy"), (start, 4), np.float32)
        self._shards.append((tokens, boxes))

    def __contains__(self, image: str) -> bool:
        return image in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, image: str) -> Regions:
        """
        Raises:
            DataError: the image is missing, or its features are not finite.
        """
        if (entry := self._entries.get(image)) is None:
            example = f"; its ids look like {next(iter(self._entries))}" if self._entries else "; it is empty"
            raise DataError(f"{self.folder}, image {image}: it has no features{example}")
        rows = slice(entry.start, entry.start + entry.rows)
        tokens, boxes = self._shards[entry.shard]
        where = f"{_shard(self.folder, entry.shard, 'tokens.npy')}, image {image}"
        return checked_regions(where, self.width, tokens[rows], boxes[rows], None)


class StoreWriter:
    """Adds images to a store, a new one or one that was begun before; use it in a ``with`` statement."""

    def __init__(
        self, folder: Path, source: Mapping[str, Any], token_width: int, shard_images: int = SHARD_IMAGES
    ) -> None:
        """
        Args:
            source: plain facts of what makes the features; those of a store that was begun must be the same.
            token_width: of the features.
            shard_images: after how many a shard is written: what a kill may lose.

        Raises:
            DataError: the folder holds something else, features of another source, or is being written.
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
            begun = FeatureStore(folder)
            if (begun.source, begun.width) != (manifest["source"], token_width):
                raise DataError(f"{folder} holds features of another source, {begun.source}; give another folder")
            for left in folder.glob(f"*{UNFINISHED}"):  # by a writer that was killed: nobody else writes now
                left.unlink()
        except BaseException:
            os.close(self._lock)
            raise
        self._known = set(begun._entries)
        self._next_shard = len(begun._shards)
        self._images: list[dict[str, Any]] = []
        self._tokens: list[np.ndarray] = []
        self._boxes: list[np.ndarray] = []

    def __contains__(self, image: str) -> bool:
        return image in self._known

    def add(self, image: str, tokens: np.ndarray, boxes_xyxy: np.ndarray, width: int, height: int) -> None:
        """Take in an image; it is on disk after the next shard is.

        Args:
            tokens: (n, token_width), n at least 1.
            boxes_xyxy: (n, 4), pixels of the photograph.
            width, height: of the photograph, pixels.

        Raises:
            DataError: the image is there already, or its features are malformed or beyond float16.
        """
        where = f"{self.folder}, image {image}"
        if image in self._known:
            raise DataError(f"{where}: it is in the store already")
        with np.errstate(over="ignore"):  # infinity is refused next
            halves = np.asarray(tokens).astype(np.float16)
        regions = checked_regions(where, self.token_width, halves, boxes_xyxy, None)
        assert regions.boxes_xyxy is not None
        self._known.add(image)
        self._images.append({"id": image, "rows": len(halves), "width": width, "height": height})
        self._tokens.append(halves)
        self._boxes.append(regions.boxes_xyxy)
        if len(self._images) >= self.shard_images:
            self.flush()

    def flush(self) -> None:
        """Write what was taken in as a shard, if there is anything."""
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
        # Whole images alone were taken in: they are kept whatever ended the work.
        try:
            self.flush()
        finally:
            os.close(self._lock)


def _lock(folder: Path) -> int:
    """A descriptor that keeps other writers out until it is closed, or its process ends."""
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
