"""Choice of the device, and errors about devices and processes."""

import pytest
import torch

from training.engine.distributed import DeviceError, choose_device


@pytest.fixture
def machine(monkeypatch):
    """Pretend to have any number of GPUs and processes."""

    def pretend(gpus, processes=1, rank=0):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
        monkeypatch.setenv("LOCAL_RANK", str(rank))

    return pretend


def test_gpus_are_used_if_there_is_one_for_every_process(machine):
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
def test_a_missing_device_is_refused_with_advice(machine, gpus, processes, name, complaint):
    machine(gpus, processes)
    with pytest.raises(DeviceError, match=complaint):
        choose_device(name)
