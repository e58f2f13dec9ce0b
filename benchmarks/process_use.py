"""Read the resident memory and the processor time of a process from /proc."""

import os
import re
from pathlib import Path

_FIELDS = {"resident": "VmRSS", "private": "RssAnon", "shared": "RssFile", "shared_memory": "RssShmem", "peak": "VmHWM"}


def resident_mb(pid: int | None = None) -> dict[str, float]:
    """Read the resident memory of a process, in units of 1e6 bytes; ``pid`` None reads that of this process.

    Returns:
        ``private``: allocated memory; ``shared``: pages of mapped files, which other processes and the page cache
        share; ``shared_memory``: pages of POSIX shared memory, such as DDS's segments; ``resident``: the sum of the
        three; ``peak``: maximum of the sum since the process began.

    Raises:
        ProcessLookupError: the process has ended.
    """
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"the process {pid} has ended") from error
    kilobytes = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", status, re.MULTILINE)}
    if not kilobytes:  # a process that has ended and was not waited for has no memory
        raise ProcessLookupError(f"the process {pid} has ended")
    return {name: round(kilobytes[field] * 1024 / 1e6, 3) for name, field in _FIELDS.items()}


def cpu_s(pid: int) -> float:
    """Return the processor time of a process with all its threads, in user and system mode, in seconds.

    Raises:
        ProcessLookupError: the process has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise ProcessLookupError(f"the process {pid} has ended") from error
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
