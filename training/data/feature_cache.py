"""A file of computed features that is filled row by row, by all processes of a machine at a time.

The file begins with a record for each row: a checksum of its bytes. A row whose record does not match is one that is
not computed yet. So a killed process leaves nothing that is taken for features, what it has computed is kept, and no
process waits for another.

    records  (rows,) uint64: 2^32 + CRC-32 of the features, 0 for an empty row
    values   (rows, width) float16, from the next multiple of 4,096 bytes
"""

import errno
import os
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.files import replaced_atomically
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
        """Read features.

        Args:
            rows: (B,) integers.

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
        """Write features.

        Args:
            rows: (B,) integers.
            values: (B, width).
        """
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
