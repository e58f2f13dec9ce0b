"""Memory of freed tensors stays in the process."""

import ctypes
import json
import subprocess
import sys

import pytest

from training.engine.allocator import keep_freed_memory, return_freed_memory

PAGES = 64 * 256
"""Pages of 4 KiB of a tensor of 64 MB, which is larger than glibc ever keeps by itself."""
PROGRAM = """
import json, resource
import torch
from training.engine.allocator import keep_freed_memory

def faults(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        first = torch.zeros(64 * 2**18)
        del first
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / rounds

returned = faults(5)
keep_freed_memory()
faults(5)
print(json.dumps([returned, faults(20)]))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_memory_of_a_freed_tensor_is_not_faulted_in_again() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    returned, kept = json.loads(done.stdout)
    if returned < PAGES / 2:
        pytest.skip("the kernel maps large tensors in huge pages")
    assert kept < returned / 3


PRIVATE_MEMORY = """
import re
from pathlib import Path
from training.engine.allocator import keep_freed_memory, return_freed_memory

def private_mb():
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

keep_freed_memory()
blocks = [bytearray(b"1") * 2**16 for _ in range(1600)]
blocks = blocks[::16]  # free memory lies between blocks that are in use
before = private_mb()
assert return_freed_memory()
print(before - private_mb())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_free_memory_between_blocks_in_use_is_returned() -> None:
    done = subprocess.run([sys.executable, "-c", PRIVATE_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 75  # of 94 MiB


def test_a_c_library_without_the_settings_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()
    assert not return_freed_memory()
