"""Release memory of weight files that an engine has mapped and copied."""

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path

_MADV_PAGEOUT = 21  # since Linux 5.4


def page_out(files: Iterable[Path]) -> None:
    """Release the resident pages of ``files`` that this process has mapped; no effect on systems other than Linux.

    ONNX Runtime copies weights into the layout of its kernels and keeps the file mapped. Pages that are read again
    (rows of the word embedding) are loaded from the file on access; modified pages are swapped out, not lost.
    """
    if sys.platform != "linux":
        return
    names = {str(file.resolve()) for file in files}
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        place, *_, name = line.split(maxsplit=5)
        if name in names:
            start, end = (int(address, 16) for address in place.split("-"))
            advise(start, end - start, _MADV_PAGEOUT)  # Linux before 5.4 lacks it: no effect
