"""Choice of the device, and errors about devices and processes."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training.engine.distributed import DeviceError, check_compiler, choose_device


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> "type[Machine]":
    """Fake any number of GPUs and processes."""
    Machine.patch = monkeypatch
    return Machine


class Machine:
    patch: pytest.MonkeyPatch

    def __init__(self, gpus: int, processes: int = 1, rank: int = 0) -> None:
        self.patch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        self.patch.setattr(torch.cuda, "device_count", lambda: gpus)
        self.patch.setenv("LOCAL_WORLD_SIZE", str(processes))
        self.patch.setenv("LOCAL_RANK", str(rank))


def test_gpus_are_used_if_there_is_one_for_every_process(machine: type[Machine]) -> None:
    machine(gpus=0)
    assert choose_device("auto") == torch.device("cpu")
    machine(gpus=2)
    assert choose_device("auto") == torch.device("cuda", 0)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device("cpu") == torch.device("cpu")
    machine(gpus=4, processes=4, rank=3)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", 3)
    machine(gpus=1, processes=2, rank=1)
    assert choose_device("auto") == torch.device("cpu")


@pytest.mark.parametrize(
    ("gpus", "processes", "name", "complaint"),
    [
        (1, 1, "tpu", "device must be auto, cpu, cuda or cuda:N, not 'tpu'"),
        (1, 1, "auto:1", "device must be"),
        (0, 1, "cuda", "torch sees no CUDA device"),
        (2, 1, "cuda:2", "there is no cuda:2: torch sees 2 GPUs, counted from 0"),
        (2, 4, "cuda", "4 processes on this machine but 2 GPUs; lower --nproc-per-node"),
        (4, 2, "cuda:1", "device cuda:1 is for one process"),
    ],
)
def test_a_missing_device_is_refused_with_advice(
    machine: type[Machine], gpus: int, processes: int, name: str, complaint: str
) -> None:
    machine(gpus, processes)
    with pytest.raises(DeviceError, match=complaint):
        choose_device(name)


def test_a_missing_compiler_is_found_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(function: object) -> object:
        raise RuntimeError("no working C++ compiler\nand much more")

    monkeypatch.setattr(torch, "compile", fail)
    with pytest.raises(DeviceError, match=r"does not work here \(no working C\+\+ compiler\); set compile: false"):
        check_compiler(torch.device("cpu"))


@pytest.mark.long
def test_an_error_in_every_process_is_reported_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command += ["training.train", str(tmp_path / "absent.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert said == [f"error: {tmp_path / 'absent.yaml'}: No such file or directory"]
