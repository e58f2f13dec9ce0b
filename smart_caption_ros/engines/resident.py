"""Memory of weights that an engine has read and will hardly read again."""

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path

_MADV_PAGEOUT = 21  # Linux 5.4


def give_back(files: Iterable[Path]) -> None:
    """Let the system have the memory of ``files`` that this process has mapped (Linux; elsewhere nothing happens).

    ONNX Runtime copies weights into the order that its kernels like and keeps the file mapped beside the copies. What
    is read from the file after all (rows of the word embedding) comes back by itself, a page at a time; nothing that
    was written to is lost.
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
            advise(start, end - start, _MADV_PAGEOUT)  # an older kernel refuses, and all is as before
