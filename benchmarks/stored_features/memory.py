"""Resident memory of this process, as Linux counts it."""

import re
from pathlib import Path


def resident_mb() -> dict[str, float]:
    """Read the resident memory, in units of 1e6 bytes.

    Returns:
        ``private``: allocated memory; ``shared``: pages of mapped files, which other processes and the page cache
        share; ``peak``: greatest sum of the two since the process began.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", status, re.MULTILINE)}
    fields = {"private": "RssAnon", "shared": "RssFile", "peak": "VmHWM"}
    return {name: round(kilobytes[field] * 1024 / 1e6, 1) for name, field in fields.items()}
