"""Memory of freed tensors stays in the process."""

import ctypes
import json
import subprocess
import sys

import pytest

from training.engine.allocator import keep_freed_memory

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


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()
