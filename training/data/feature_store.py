"""The feature store: a folder of arrays. They are read by memory map, so a store may be larger than memory.

``manifest.json`` holds the source of the features and their width. The images are in shards of three files:

    shard-00000.tokens.npy   (rows, width) float16
    shard-00000.boxes.npy    (rows, 4) float32, xyxy pixels of the photograph
    shard-00000.json         for each image its id, number of rows, width and height of the photograph in pixels

Rows are in the order of the index. The index of a shard is written last, and every file is written under a temporary
name and renamed, so a killed writer (:mod:`training.data.feature_store_writer`) leaves complete shards and temporary
files, which the next writer removes.

In version 2 of the format, an image may lack what its source did not have. Where its size is unknown, ``width`` and
``height`` are null, and its boxes are fractions of the image. Where its boxes are unknown, their rows are zeros and its
entry has ``"boxes": false``. A store without such images has version 1, which earlier releases read.
"""

import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from training.data.json_files import read_json
from training.data.regions import Regions, checked_regions
from training.data.visual_batches import VisualBatch
from training.errors import DataError


class MappedArray:
    """The array of an npy file as a memory map."""

    def __init__(self, path: Path, shape: tuple[int, int], dtype: type) -> None:
        """
        Args:
            path: of the file.
            shape: that the array must have, (rows, width).
            dtype: that the array must have.

        Raises:
            DataError: the file is missing, cut short, or holds another array.
        """
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


COMPLETE, INCOMPLETE = 1, 2
"""Versions of the format: all images have boxes and sizes, or some lack them."""
MANIFEST = "manifest.json"


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
            self.version, self.width, self.source = (
                manifest[key] for key in ("format_version", "token_width", "source")
            )
        except KeyError as error:
            raise DataError(f"{folder / MANIFEST}: it lacks {error}") from None
        if self.version not in (COMPLETE, INCOMPLETE):
            known = f"{COMPLETE} and {INCOMPLETE}"
            raise DataError(f"{folder / MANIFEST}: format version {self.version!r}; this version reads {known}")
        if not isinstance(self.width, int) or self.width < 1:
            raise DataError(f"{folder / MANIFEST}: token_width is {self.width!r}")
        self.index = _Index()
        self.arrays: list[_Shard] = []
        for number, index in enumerate(sorted(folder.glob("shard-*.json"))):
            if index != shard_file(folder, number, "json"):
                raise DataError(f"{shard_file(folder, number, 'json')}: no such file, though later shards are there")
            rows = self.index.append(number, index)
            self.arrays.append(_Shard(folder, number, rows, self.width))

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.arrays)

    def __contains__(self, image: str) -> bool:
        return image in self.index.places

    def __len__(self) -> int:
        return len(self.index.places)

    def images(self) -> list[str]:
        return list(self.index.places)

    def read(self, image: str) -> Regions:
        index, place = self.index, self.place(image)
        shard, start = index.shards[place], index.starts[place]
        rows, arrays = slice(start, start + index.rows[place]), self.arrays[shard]
        width, height = index.sizes[2 * place : 2 * place + 2]
        where = _where(self.folder, shard, image)
        size = (width, height) if width else None
        tokens, boxes = arrays.tokens.array[rows], arrays.boxes.array[rows] if index.has_boxes[place] else None
        return checked_regions(where, self.width, tokens, boxes, size)

    def select(self, images: Sequence[str]) -> "StoredBatches":
        """Prepare the reading of batches of images.

        Args:
            images: image ids; the sequence is kept for error messages.

        Raises:
            DataError: an image is missing.
        """
        return StoredBatches(self, images)

    def place(self, image: str) -> int:
        """Return the place of an image in the index.

        Raises:
            DataError: the image is missing; shows an id of the store.
        """
        if (place := self.index.places.get(image)) is None:
            example = f"; its ids look like {next(iter(self.index.places))}" if len(self) else "; it is empty"
            raise DataError(f"{self.folder}, image {image}: it has no features{example}")
        return place


class StoredBatches:
    """Batches of a list of images of a store, a :class:`training.data.stored_features.RegionBatches`.

    An image takes 25 bytes of memory, whatever its id; the features stay in their files.
    """

    def __init__(self, store: FeatureStore, images: Sequence[str]) -> None:
        places, index = np.array([store.place(image) for image in images], np.int64), store.index
        self._store, self._images = store, images
        self._shard, self._start, self._rows = (
            np.asarray(values)[places] for values in (index.shards, index.starts, index.rows)
        )
        self._sizes = np.asarray(index.sizes).reshape(-1, 2)[places]
        self.has_boxes: NDArray[np.bool_] = np.asarray(index.has_boxes, bool)[places]
        """(images,) whether the boxes of an image are known."""
        # A page holds the boxes of several images: in one piece they take far fewer reads than image by image.
        for shard in np.unique(self._shard).tolist():
            store.arrays[shard].boxes.will_need()

    def read(self, places: np.ndarray) -> VisualBatch:
        starts, rows = self._start[places], self._rows[places]
        shards = [self._store.arrays[shard] for shard in self._shard[places].tolist()]
        slices = list(map(slice, starts.tolist(), (starts + rows).tolist()))
        # All images are requested of the disk before the first is waited for.
        for shard, own in zip(shards, slices, strict=True):
            shard.tokens.will_need(own.start, own.stop)
        most = int(rows.max())
        tokens = np.empty((len(places), most, self._store.width), np.float16)
        boxes = np.empty((len(places), most, 4), np.float32)
        for row, (shard, own, count) in enumerate(zip(shards, slices, rows.tolist(), strict=True)):
            tokens[row, :count], boxes[row, :count] = shard.tokens.array[own], shard.boxes.array[own]
            if count < most:
                tokens[row, count:] = boxes[row, count:] = 0
        self._check_finite(places, tokens, boxes)
        sizes = self._sizes[places].astype(np.float32)
        boxes /= np.where(sizes > 0, sizes, 1)[:, None, [0, 1, 0, 1]]
        return VisualBatch(
            values=torch.from_numpy(tokens),
            mask=None if (rows == most).all() else torch.from_numpy(np.arange(most) < rows[:, None]),
            boxes_xyxy=torch.from_numpy(boxes) if self.has_boxes[places].all() else None,
        )

    def _check_finite(self, places: np.ndarray, tokens: np.ndarray, boxes: np.ndarray) -> None:
        if _all_finite(tokens) and np.isfinite(boxes).all():
            return
        for place, own_tokens, own_boxes in zip(places, tokens, boxes, strict=True):
            for kind, values in (("features", own_tokens), ("boxes", own_boxes)):
                if not np.isfinite(values).all():
                    where = _where(self._store.folder, self._shard[place], self._images[place])
                    raise DataError(f"{where}: {kind} contain NaN or infinity")


class _Index:
    """The images of a store; arrays, because a large store has millions of images."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        """Place of an image in the arrays below."""
        self.shards, self.starts, self.rows = array("i"), array("q"), array("i")
        """Shard of an image, its first row there and the number of its rows."""
        self.sizes = array("i")
        """Width and height of each image in pixels, or twice 0 where they are unknown."""
        self.has_boxes = array("b")

    def append(self, shard: int, path: Path) -> int:
        """Append the images of a shard's index, and return the number of the shard's rows.

        Raises:
            DataError: the index is malformed.
        """
        start = 0
        for entry in _read_object(path).get("images", ()):
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
            if image in self.places:
                raise DataError(f"{path}, image {image}: it is in the store twice")
            self.places[image] = len(self.places)
            self.shards.append(shard)
            self.starts.append(start)
            self.rows.append(rows)
            self.sizes.extend(size)
            self.has_boxes.append(entry.get("boxes", True) is not False)
            start += rows
        return start


class _Shard:
    """The arrays of a shard, tokens and boxes."""

    def __init__(self, folder: Path, number: int, rows: int, width: int) -> None:
        self.tokens = MappedArray(shard_file(folder, number, "tokens.npy"), (rows, width), np.float16)
        self.boxes = MappedArray(shard_file(folder, number, "boxes.npy"), (rows, 4), np.float32)


def _all_finite(halves: NDArray[np.float16]) -> bool:
    """Return whether all numbers are finite; `numpy.isfinite` takes 40 times as long for float16.

    Infinity and NaN are the numbers with the greatest exponent, so they are the greatest bit patterns of their sign.
    """
    return bool(halves.view(np.int16).max() < 0x7C00 and halves.view(np.uint16).max() < 0xFC00)


def _where(folder: Path, shard: int, image: str) -> str:
    return f"{shard_file(folder, shard, 'tokens.npy')}, image {image}"


def shard_file(folder: Path, number: int, kind: str) -> Path:
    """Return the path of a file of a shard: ``tokens.npy``, ``boxes.npy`` or the index, ``json``."""
    return folder / f"shard-{number:05d}.{kind}"


def _read_object(path: Path) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected an object")
    return document
