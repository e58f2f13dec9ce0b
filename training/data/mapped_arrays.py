"""Arrays of npy files as memory maps, of which a bounded part is counted as memory of the process."""

import mmap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.errors import DataError

MAPPED_BYTES = 1 << 27
"""So many bytes are read from memory maps before their pages are unmapped."""


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

    def unmap_pages(self) -> None:
        """Remove all pages from the memory of this process; they stay in the page cache, and a later access maps them.

        The map is shared and read-only, so nothing is lost, and other threads may be reading the array.
        """
        self._map.madvise(mmap.MADV_DONTNEED)


class MappedMemory:
    """Bounds the memory of a process that reads memory maps.

    The system counts every page that a process has touched as its resident memory for as long as the page is in the
    page cache: after an epoch, the size of the data set. Tools and batch systems that limit the resident memory of a
    process do not tell these pages from allocated ones. So all pages are unmapped whenever ``limit`` bytes were read.
    """

    def __init__(self, arrays: Sequence[MappedArray], limit: int = MAPPED_BYTES) -> None:
        """
        Args:
            arrays: whose pages are unmapped.
            limit: bytes that are read before.
        """
        self._arrays, self._limit = arrays, limit
        self._read = 0
        self._lock = threading.Lock()

    def count(self, read: int) -> None:
        """Add the bytes that were just read, by any thread."""
        with self._lock:
            self._read += read
            if self._read < self._limit:
                return
            self._read = 0
        for array in self._arrays:
            array.unmap_pages()
