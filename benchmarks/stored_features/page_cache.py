"""The page cache: removing files from it, and whether reading came from the disk; needs no privileges."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

_CHUNK_BYTES = 1 << 22


def evict(paths: Iterable[Path]) -> None:
    """Remove files from the page cache of this machine.

    Pages that a process has mapped remain. Caches below the page cache, such as those of a virtual machine's host, are
    not under our control.
    """
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # pages that are not yet written cannot be removed
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def bytes_from_disk() -> int:
    """Count the bytes that this process and its ended child processes have read from a disk."""
    found = re.search(r"^read_bytes: (\d+)$", Path("/proc/self/io").read_text(encoding="ascii"), re.MULTILINE)
    assert found is not None
    return int(found[1])


def read_sequentially(paths: Iterable[Path]) -> None:
    """Read files from beginning to end, one after the other, and keep nothing."""
    buffer = bytearray(_CHUNK_BYTES)
    for path in paths:
        with path.open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass
