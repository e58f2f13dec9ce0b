"""Memory that a node's process frees: it is kept once, not for every thread."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Threads that live at once have a heap each by default. They allocate in turn, so that one heap serves all of them
# whatever remains behind their blocks.
PROGRAM = """
import sys, threading
import numpy as np
if sys.argv[1] == "kept":
    from smart_caption_ros.nodes.allocator import keep_freed_memory
    keep_freed_memory()

def private_mb():
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1000

def work(turn, together):
    with turn:
        blocks = [np.ones(2**17) for _ in range(20)]  # 1 MiB each
        del blocks[:]
    together.wait()

before = private_mb()
turn, together = threading.Lock(), threading.Barrier(8)
threads = [threading.Thread(target=work, args=(turn, together)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(private_mb() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is specific to glibc")
def test_eight_threads_keep_no_more_freed_memory_than_one() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, "kept"], capture_output=True, text=True, check=True)
    # One heap keeps the 20 MiB of a thread and the unused part of a few blocks; eight would keep 160 MiB.
    assert float(done.stdout) < 80


FRAGMENTS = """
import sys
import numpy as np
from smart_caption_ros.nodes.allocator import keep_freed_memory, release_freed_memory, resident_mb
keep_freed_memory()
before = resident_mb()
pairs = [(np.ones(2**17), np.ones(2**10)) for _ in range(100)]  # 1 MiB, and 8 KiB after it that stay
small = [pair[1] for pair in pairs]
del pairs
kept = resident_mb() - before
release_freed_memory()
print(kept, resident_mb() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is specific to glibc")
def test_free_memory_between_blocks_in_use_is_returned_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FRAGMENTS], capture_output=True, text=True, check=True)
    kept, after = map(float, done.stdout.split())
    assert kept > 90
    assert after < 10
