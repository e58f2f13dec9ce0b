"""Checkpoints are written whole or not at all, and other files are refused."""

import pickle
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from training.checkpoint import load_checkpoint, save_checkpoint
from training.errors import CheckpointError


def test_tensors_and_state_are_read_back(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, {"a": torch.arange(3), "b": torch.ones(2, 2).t()}, {"step": 7, "history": [{"x": 1.5}]})
    tensors, state = load_checkpoint(path)
    assert torch.equal(tensors["a"], torch.arange(3))
    assert state == {"step": 7, "history": [{"x": 1.5}]}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [b"", b"garbage", pickle.dumps({"a": 1})])
def test_other_files_are_refused_and_never_unpickled(tmp_path, content):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        load_checkpoint(path)


def test_files_have_the_ordinary_mode_and_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "a.safetensors", {"x": torch.ones(2)}, {})
    (tmp_path / "ordinary").touch()
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "ordinary").stat().st_mode

    def full(tensors, path, **_):
        Path(path).write_bytes(b"half")
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("training.checkpoint.save_file", full)
    with pytest.raises(CheckpointError, match=r"a\.safetensors cannot be written \(I/O error: No space left"):
        save_checkpoint(tmp_path / "a.safetensors", {"x": torch.zeros(2)}, {})
    assert load_checkpoint(tmp_path / "a.safetensors")[0]["x"].tolist() == [1, 1]
    assert [path.name for path in tmp_path.glob("a.*")] == ["a.safetensors"]
