"""Checkpoints are written whole or not at all, and other files are refused."""

import pickle
import subprocess
import sys

import pytest
import torch
from safetensors import SafetensorError

from training.checkpoint import load_checkpoint, optimizer_tensors, restore_optimizer, save_checkpoint
from training.errors import CheckpointError


def test_tensors_and_state_are_read_back(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, {"a": torch.arange(3), "b": torch.ones(2, 2).t()}, {"step": 7, "history": [{"x": 1.5}]})
    tensors, state = load_checkpoint(path)
    assert torch.equal(tensors["a"], torch.arange(3))
    assert state == {"step": 7, "history": [{"x": 1.5}]}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


RUN = """
import sys, torch
from pathlib import Path
from training.checkpoint import save_checkpoint
size = 0
while True:
    size = (size + 7919) % 50_000
    save_checkpoint(Path(sys.argv[1]), {"a": torch.zeros(size)}, {"size": size})
"""


def test_a_checkpoint_is_read_whole_while_a_run_replaces_it(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, {"a": torch.zeros(0)}, {"size": 0})
    seen = set()
    with subprocess.Popen([sys.executable, "-c", RUN, path]) as run:
        try:
            while len(seen) < 100:
                tensors, state = load_checkpoint(path)
                assert len(tensors["a"]) == state["size"]
                seen.add(state["size"])
                assert run.poll() is None
        finally:
            run.kill()


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps({"a": 1})])
def test_other_files_are_refused_and_never_unpickled(tmp_path, content):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        load_checkpoint(path)


def test_a_restored_optimizer_takes_the_same_steps():
    torch.manual_seed(0)
    one, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    first = torch.optim.Adam(one.parameters(), lr=0.1)

    def step(module, optimizer):
        optimizer.zero_grad()
        module(torch.ones(1, 3)).square().sum().backward()
        optimizer.step()

    step(one, first)
    other.load_state_dict(one.state_dict())
    second = torch.optim.Adam(other.parameters(), lr=0.1)
    restore_optimizer(second, {name: tensor.clone() for name, tensor in optimizer_tensors(first).items()})
    step(one, first)
    step(other, second)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_files_have_the_ordinary_mode_and_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "a.safetensors", {"x": torch.ones(2)}, {})
    (tmp_path / "ordinary").touch()
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "ordinary").stat().st_mode

    def full(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("training.checkpoint.save_file", full)
    with pytest.raises(CheckpointError, match=r"a\.safetensors cannot be written \(I/O error: No space left"):
        save_checkpoint(tmp_path / "a.safetensors", {"x": torch.zeros(2)}, {})
    assert load_checkpoint(tmp_path / "a.safetensors")[0]["x"].tolist() == [1, 1]
    assert [path.name for path in tmp_path.glob("a.*")] == ["a.safetensors"]
