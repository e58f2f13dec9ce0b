"""The feature store: a folder of arrays of visual tokens.

``training.features`` makes one, and runs keep the tokens of a frozen backbone in one. The arrays are read by memory
map, so a store may be larger than memory.

``manifest.json`` holds the source of the features and their width. The images are in shards of three files:

    shard-00000.tokens.npy   (rows, width) float16
    shard-00000.boxes.npy    (rows, 4) float32, xyxy pixels of the photograph
    shard-00000.json         for each image its id, number of rows, width and height of the photograph in pixels

Rows are in the order of the index. The index of a shard is written last, and every file is written under a temporary
name and renamed, so a killed writer leaves complete shards and temporary files, which the next writer removes. Several
processes may write to one store: each writes whole shards, one process at a time.

A store, or an array of it, that is missing, malformed or cut short is a :class:`DataError`, which names the file; so is
an image that the store lacks.

An image may lack what its source did not have. Where its size is unknown, ``width`` and ``height`` are null, and its
boxes are fractions of the image. Where its boxes are unknown, their rows are zeros and its entry has
``"boxes": false``.
"""

import fcntl
import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import UNFINISHED, replaced_atomically, write_text_atomically
from training.data.json_files import read_json_object
from training.data.regions import Regions, checked_regions, pad_regions
from training.errors import DataError
from training.models.captioner import Visual


class MappedArray:
    """The array of an npy file as a memory map."""

    def __init__(self, path: Path, shape: tuple[int, int], dtype: type) -> None:
        try:
            mapped: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise DataError(f"{path}: no such file, though its index is there") from None
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path} is cut short or no array ({error})") from None
        if mapped.shape != shape or mapped.dtype != dtype:
            raise DataError(f"{path}: {mapped.dtype} {mapped.shape} instead of {np.dtype(dtype)} {shape}")
        self.array: NDArray[Any] = mapped.view(np.ndarray)  # slices of a memmap object take several times as long
        """The rows, (rows, width)."""
        self._map: mmap.mmap = mapped.base
        self._offset, self._row_bytes = mapped.offset, mapped.strides[0]

    def will_need(self, start: int = 0, stop: int | None = None) -> None:
        """Let the system read rows ahead, instead of one page after the other when they are touched."""
        stop = len(self.array) if stop is None else stop
        first = (self._offset + start * self._row_bytes) & -mmap.PAGESIZE
        self._map.madvise(mmap.MADV_WILLNEED, first, self._offset + stop * self._row_bytes - first)


FORMAT_VERSION = 2
MANIFEST = "manifest.json"
SHARD_IMAGES = 500
"""Images in a shard. If the process is killed, the shard that is not yet written is lost."""


class FeatureStore:
    """A store that is open for reading, a :class:`training.data.regions.RegionFeatures`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / MANIFEST).exists():
            raise DataError(f"{folder / MANIFEST}: no such file; `python -m training.features` makes a feature store")
        manifest = read_json_object(folder / MANIFEST)
        try:
            version, self.width, self.source = (manifest[key] for key in ("format_version", "token_width", "source"))
        except KeyError as error:
            raise DataError(f"{folder / MANIFEST}: it lacks {error}") from None
        if version != FORMAT_VERSION:
            raise DataError(f"{folder / MANIFEST}: format version {version!r}; this version reads {FORMAT_VERSION}")
        if not isinstance(self.width, int) or self.width < 1:
            raise DataError(f"{folder / MANIFEST}: token_width is {self.width!r}")
        self.entries: dict[str, _Entry] = {}
        """The images, by image id."""
        self.shards: list[_Shard] = []
        self.refresh()

    def refresh(self) -> None:
        """Find the shards that were written since the last call. Other threads may read meanwhile."""
        known = len(self.shards)
        for number, path in enumerate(sorted(self.folder.glob("shard-*.json"))[known:], known):
            if path != shard_file(self.folder, number, "json"):
                raise DataError(
                    f"{shard_file(self.folder, number, 'json')}: no such file, though later shards are there"
                )
            entries = _read_index(path, number)
            self.shards.append(_Shard(self.folder, number, sum(entry.rows for _, entry in entries), self.width))
            for image, entry in entries:
                if self.entries.setdefault(image, entry) is not entry:
                    raise DataError(f"{path}, image {image}: it is in the store twice")

    def __contains__(self, image: str) -> bool:
        return image in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def images(self) -> list[str]:
        return list(self.entries)

    def tokens(self, image: str) -> NDArray[np.float16]:
        """Read the tokens of an image as they are stored, (rows, width)."""
        entry = self.entry(image)
        tokens: NDArray[np.float16] = self.shards[entry.shard].tokens.array[entry.place]
        return tokens

    def read(self, image: str) -> Regions:
        entry = self.entry(image)
        boxes = self.shards[entry.shard].boxes.array[entry.place] if entry.has_boxes else None
        size = (entry.width, entry.height) if entry.width else None
        where = f"{shard_file(self.folder, entry.shard, 'tokens.npy')}, image {image}"
        return checked_regions(where, self.width, self.tokens(image), boxes, size)

    def read_batch(self, images: Sequence[str]) -> Visual:
        """Read B images as a batch padded with zeros: tokens float16, boxes as fractions, None where any is unknown."""
        entries = [self.entry(image) for image in images]
        for entry in entries:  # all images are requested of the disk before the first is waited for
            self.shards[entry.shard].tokens.will_need(entry.place.start, entry.place.stop)
        visual = pad_regions([self._regions(entry) for entry in entries])
        boxes = visual.boxes_xyxy
        if not (_all_finite(visual.tokens.numpy()) and (boxes is None or bool(boxes.isfinite().all()))):
            for image in images:
                self.read(image)  # raises for the one that is malformed
        return visual

    def _regions(self, entry: "_Entry") -> Regions:
        """Return the regions of an image as they are stored, tokens float16."""
        shard = self.shards[entry.shard]
        size = (entry.width, entry.height) if entry.width else None
        boxes = None
        if entry.has_boxes:
            boxes = np.divide(shard.boxes.array[entry.place], (size or (1, 1)) * 2, dtype=np.float32)
        return Regions(shard.tokens.array[entry.place], boxes, size)

    def entry(self, image: str) -> "_Entry":
        """Return the index entry of an image."""
        if (entry := self.entries.get(image)) is None:
            example = f"; its ids look like {next(iter(self.entries))}" if len(self) else "; it is empty"
            raise DataError(f"{self.folder}, image {image}: it has no features{example}")
        return entry


class _Entry(NamedTuple):
    """An image in the index."""

    shard: int
    start: int
    """Its first row in the shard."""
    rows: int
    width: int
    height: int
    """Size of the photograph in pixels; 0 where it is unknown."""
    has_boxes: bool

    @property
    def place(self) -> slice:
        """Its rows in the arrays of the shard."""
        return slice(self.start, self.start + self.rows)


def _read_index(path: Path, shard: int) -> list[tuple[str, _Entry]]:
    """Read the image ids and entries of a shard."""
    entries, start = [], 0
    for entry in read_json_object(path).get("images", ()):
        try:
            image, rows, size = entry["id"], entry["rows"], (entry["width"], entry["height"])
        except (KeyError, TypeError):
            raise DataError(f"{path}: an entry lacks id, rows, width or height") from None
        if not isinstance(image, str) or not isinstance(rows, int) or not 1 <= rows < 1 << 31:
            raise DataError(f"{path}, image {image}: {rows!r} rows")
        if size == (None, None):
            size = (0, 0)
        elif not all(isinstance(side, int) and 1 <= side < 1 << 31 for side in size):
            raise DataError(f"{path}, image {image}: the photograph's size is {size[0]!r} x {size[1]!r}")
        entries.append((image, _Entry(shard, start, rows, *size, entry.get("boxes", True) is not False)))
        start += rows
    return entries


class _Shard:
    """The arrays of a shard, tokens and boxes."""

    def __init__(self, folder: Path, number: int, rows: int, width: int) -> None:
        self._folder, self._number, self._rows = folder, number, rows
        self.tokens = MappedArray(shard_file(folder, number, "tokens.npy"), (rows, width), np.float16)

    @cached_property
    def boxes(self) -> MappedArray:
        """Opened when they are needed: every mapped file takes a descriptor."""
        boxes = MappedArray(shard_file(self._folder, self._number, "boxes.npy"), (self._rows, 4), np.float32)
        boxes.will_need()  # a page holds those of several images: in one piece they take far fewer reads
        return boxes


def _all_finite(halves: NDArray[np.float16]) -> bool:
    """Return whether all numbers are finite; `numpy.isfinite` takes 40 times as long for float16.

    Infinity and NaN are the numbers with the greatest exponent, so they are the greatest bit patterns of their sign.
    """
    return bool(halves.view(np.int16).max() < 0x7C00 and halves.view(np.uint16).max() < 0xFC00)


def shard_file(folder: Path, number: int, kind: str) -> Path:
    """Return the path of a file of a shard: ``tokens.npy``, ``boxes.npy`` or the index, ``json``."""
    return folder / f"shard-{number:05d}.{kind}"


@dataclass(frozen=True)
class StoreReport:
    """Result of filling a store."""

    stored: int
    """Images in the store, of those that it was filled with."""
    broken: Sequence[str]
    """Reasons why images could not be read, one sentence each."""


class _Pending(NamedTuple):
    """An image that is not written yet."""

    entry: dict[str, Any]
    tokens: NDArray[np.float16]
    boxes: NDArray[np.float32]


class StoreWriter:
    """Adds images to a new or an existing store; use it in a ``with`` statement, or call :meth:`flush`."""

    def __init__(
        self, folder: Path, source: Mapping[str, Any], token_width: int, shard_images: int = SHARD_IMAGES
    ) -> None:
        """
        Args:
            folder: of the store; made where it does not exist.
            source: JSON values that identify what makes the features; an existing store must have the same.

        Raises:
            DataError: the folder holds other files or features of another source.
        """
        self._shard_images, self._pending = shard_images, dict[str, _Pending]()
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
        elif not (folder / MANIFEST).exists() and any(folder.iterdir()):
            raise DataError(f"{folder} exists and is not a feature store; it is left alone")
        source = json.loads(json.dumps(source))
        with _locked(folder):
            if not (folder / MANIFEST).exists():
                manifest = {"format_version": FORMAT_VERSION, "token_width": token_width, "source": source}
                _write_json(folder / MANIFEST, manifest)
            # Nobody writes while the folder is locked, so these files are a killed writer's.
            for unfinished in folder.glob(f"*{UNFINISHED}"):
                unfinished.unlink()
        self.store = FeatureStore(folder)
        if (self.store.source, self.store.width) != (source, token_width):
            raise DataError(f"{folder} holds features of another source, {self.store.source}; give another folder")

    def __contains__(self, image: str) -> bool:
        return image in self._pending or image in self.store

    def tokens(self, image: str) -> NDArray[np.float16] | None:
        """Return the tokens of an image, (rows, width), written or not; None if there are none. For any thread."""
        if (pending := self._pending.get(image)) is not None:
            return pending.tokens
        return self.store.tokens(image) if image in self.store else None

    def add(
        self, image: str, tokens: np.ndarray, boxes_xyxy: np.ndarray | None, width: int | None, height: int | None
    ) -> None:
        """Add an image; it is on disk after the next :meth:`flush`.

        Args:
            tokens: (n, token_width), n at least 1.
            boxes_xyxy: (n, 4), pixels of the photograph, or fractions of it where its size is unknown; None where the
                boxes are unknown.
            width: of the photograph, pixels; None where unknown.
            height: of the photograph, pixels; None where unknown.

        Raises:
            DataError: the image is in the store already, or its features are malformed or beyond float16.
        """
        where = f"{self.store.folder}, image {image}"
        if image in self:
            raise DataError(f"{where}: it is in the store already")
        with np.errstate(over="ignore"):  # checked_regions refuses infinity
            halves = np.asarray(tokens).astype(np.float16)
        size = None if width is None and height is None else (width, height)
        checked = checked_regions(where, self.store.width, halves, boxes_xyxy, size)
        entry: dict[str, Any] = {"id": image, "rows": len(halves), "width": width, "height": height}
        boxes = np.zeros((len(halves), 4), np.float32)
        if checked.boxes_xyxy is None:
            entry["boxes"] = False
        else:
            boxes[:] = boxes_xyxy
        self._pending[image] = _Pending(entry, halves, boxes)
        if len(self._pending) >= self._shard_images:
            self.flush()

    def flush(self) -> None:
        """Write the images that were added since the last call as a shard, and find those of other processes."""
        folder, store = self.store.folder, self.store
        with _locked(folder):
            store.refresh()
            new = [pending for image, pending in self._pending.items() if image not in store]
            if new:
                arrays = {
                    "tokens.npy": np.concatenate([pending.tokens for pending in new]),
                    "boxes.npy": np.concatenate([pending.boxes for pending in new]),
                }
                try:
                    for kind, values in arrays.items():
                        path = shard_file(folder, len(store.shards), kind)
                        with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
                            np.save(stream, values)
                    index = {"images": [pending.entry for pending in new]}
                    _write_json(shard_file(folder, len(store.shards), "json"), index)
                except OSError as error:
                    raise DataError(f"{folder}: features cannot be written: {error.strerror}") from None
                store.refresh()
        self._pending = {}  # another object, because another thread may be reading from the former

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Only complete images were added, so they are kept after an error as well.
        self.flush()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Exclude the writers of other processes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    write_text_atomically(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
