"""A file of computed features that is filled row by row, by all processes of a machine at a time.

The file begins with a record for each row: a checksum of its bytes. A row whose record does not match is one that is
not computed yet. So a killed process leaves nothing that is taken for features, what it has computed is kept, and no
process waits for another.

    records  (rows,) uint64: 2^32 + CRC-32 of the features, 0 for an empty row
    values   (rows, width) float16, from the next multiple of 4,096 bytes

:class:`GridFeatures` says in which rows of which files the features of a list of photographs are.
"""

import errno
import hashlib
import json
import os
import shutil
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from tqdm import tqdm

from smart_caption_ros.files import replaced_atomically, sha256_of_bytes
from training.data.caption_dataset import CaptionDataset
from training.errors import DataError

_PAGE = 4096
_WRITTEN = 1 << 32


class FeatureCache:
    """Rows of features in a file."""

    def __init__(self, path: Path, rows: int, width: int) -> None:
        """Open a file, or reserve the space of a new one and say how much it is.

        Args:
            path: the file; its name identifies what the features are computed from.
            rows: number of rows.
            width: number of values in a row.

        Raises:
            DataError: there is no space for the file.
        """
        self.path, self.width = path, width
        start = -(-rows * 8 // _PAGE) * _PAGE
        size = start + rows * width * 2
        if not path.exists() or path.stat().st_size != size:
            _reserve(path, size)
        self._records = np.memmap(path, np.uint64, "r+", shape=(rows,))
        self._values = np.memmap(path, np.float16, "r+", offset=start, shape=(rows, width))

    def read(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
        """Read the features of B rows.

        Returns:
            (B, width) the features, undefined where they are not computed yet; and (B,) whether they are computed.
        """
        records = self._records[rows]
        values = self._values[rows]
        computed = records != 0
        # At every read: another process may be writing the row.
        computed[computed] = _records_of(values[computed]) == records[computed]
        return values, computed

    def write(self, rows: NDArray[np.integer], values: NDArray[np.float16]) -> None:
        """Write the features of B rows, (B, width)."""
        self._records[rows] = 0
        self._values[rows] = values
        self._records[rows] = _records_of(values)


def _records_of(values: NDArray[np.float16]) -> NDArray[np.uint64]:
    return np.array([_WRITTEN + zlib.crc32(row) for row in values], np.uint64)


def _reserve(path: Path, size: int) -> None:
    """Create a file of zeros. Its space is reserved, because a mapped file that outgrows its disk kills the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    tqdm.write(f"features are kept in {path}: {_in_words(size)}", file=sys.stderr)
    try:
        if size > free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with replaced_atomically(path) as unfinished, unfinished.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise DataError(
            f"{path}: the features need {_in_words(size)}, but {_in_words(free)} are free there; remove features of "
            "earlier runs from that folder"
        ) from None


def _in_words(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def fingerprint(network: nn.Module) -> str:
    """Compute the sha256 of the weights of a network that do not learn, which is part of the cache key."""
    learning = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        if name not in learning:
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class GridFeatures:
    """Cached features of a list of images, with the same number of views each."""

    caches: Sequence[FeatureCache]
    places: NDArray[np.integer]
    """(images, 2) index of the cache, and row of the first view in it."""

    def read(
        self, images: NDArray[np.integer], views: NDArray[np.integer]
    ) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
        """Read the features of B views.

        Args:
            images: (B,) indices into the list.
            views: (B,) which view of the image: 1 for the mirror image, else 0.

        Returns:
            (B, width) the features, undefined where they are not computed yet; and (B,) whether they are computed.
        """
        caches, rows = self._find(images, views)
        values = np.empty((len(rows), self.caches[0].width), np.float16)
        computed = np.empty(len(rows), bool)
        for index in np.unique(caches):
            own = caches == index
            values[own], computed[own] = self.caches[index].read(rows[own])
        return values, computed

    def write(self, images: NDArray[np.integer], views: NDArray[np.integer], values: NDArray[np.float16]) -> None:
        """Write the features of B views, (B, width)."""
        caches, rows = self._find(images, views)
        for index in np.unique(caches):
            own = caches == index
            self.caches[index].write(rows[own], values[own])

    def _find(
        self, images: NDArray[np.integer], views: NDArray[np.integer]
    ) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Return the index of the cache of each view, and its row there."""
        return self.places[images, 0], self.places[images, 1] + views


def features_of_photographs(
    folder: Path, dataset: CaptionDataset, images: Sequence[str], facts: Sequence[Any], width: int, slots: int
) -> GridFeatures:
    """Open the cached features of photographs, of which the list may name one several times.

    Each source of a mixture has a file of its own, which runs on that source alone use as well.

    Args:
        folder: of the cache files.
        dataset: of the photographs.
        images: image ids.
        facts: JSON values that identify how the features are computed.
        width: values of a view's features.
        slots: 2 if the second view of a photograph, its mirror image, is kept as well, else 1.

    Raises:
        DataError: a photograph cannot be read, or there is no space for the features.
    """
    caches: list[FeatureCache] = []
    places: dict[str, tuple[int, int]] = {}
    for group in dataset.groups(images):
        places.update({image: (len(caches), row * slots) for row, image in enumerate(group)})
        path = folder / f"grid-{_key([*facts, digest_of_samples(dataset, group), group, slots])}.features"
        caches.append(FeatureCache(path, len(group) * slots, width))
    return GridFeatures(caches, np.array([places[image] for image in images]))


def _key(contents: Sequence[Any]) -> str:
    return sha256_of_bytes(json.dumps(contents).encode())[:16]


def digest_of_samples(dataset: CaptionDataset, images: list[str]) -> str:
    """Compute a digest of three photographs, because a data set that is generated again reuses its file names."""
    samples = dataset.read_images([images[0], images[len(images) // 2], images[-1]])
    return sha256_of_bytes(samples.tobytes())
