"""Pages of memory maps are unmapped after a limit, without a change of what is read."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from training.data.mapped_arrays import MappedArray, MappedMemory

ROWS, WIDTH = 1000, 2048


@pytest.fixture
def mapped(tmp_path: Path) -> MappedArray:
    rows = np.arange(ROWS * WIDTH, dtype=np.int32).reshape(ROWS, WIDTH)
    np.save(tmp_path / "rows.npy", rows)
    return MappedArray(tmp_path / "rows.npy", (ROWS, WIDTH), np.int32)


def resident_kb(array: np.ndarray) -> int:
    """Read how much of the memory map that contains an array is counted as memory of this process."""
    address = array.__array_interface__["data"][0]
    maps = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    for entry in filter(None, maps):
        start, end = (int(number, 16) for number in entry.split(None, 1)[0].split("-"))
        if start <= address < end:
            return int(re.findall(r"^Rss:\s+(\d+) kB", entry, re.MULTILINE)[0])
    raise AssertionError("the array is in no memory map")


def test_pages_are_unmapped_when_the_limit_is_reached(mapped: MappedArray) -> None:
    memory = MappedMemory([mapped], limit=mapped.array.nbytes)
    total = int(mapped.array.sum(dtype=np.int64))
    memory.count(mapped.array.nbytes // 2)
    assert resident_kb(mapped.array) * 1024 >= mapped.array.nbytes
    memory.count(mapped.array.nbytes // 2)
    assert resident_kb(mapped.array) == 0
    assert int(mapped.array.sum(dtype=np.int64)) == total


def test_threads_read_the_same_rows_while_pages_are_unmapped(mapped: MappedArray) -> None:
    memory = MappedMemory([mapped], limit=1)  # after every read

    def read(row: int) -> bool:
        copied = mapped.array[row].copy()
        memory.count(copied.nbytes)
        return bool((copied == np.arange(row * WIDTH, (row + 1) * WIDTH)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(ROWS)))
