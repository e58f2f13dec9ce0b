"""The table of a GPU: refused without one, and what it says of engines that are not there."""

import pytest
import torch

from benchmarks import gpu


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_command_says_so_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gpu"])
    assert gpu.main() != 0
    error = capsys.readouterr().err
    assert "torch sees no CUDA device" in error
    assert error.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_an_engine_that_is_not_there_has_its_reason_in_the_table():
    rows = gpu.engine_rows(rounds=1)
    assert set(rows) == {f"caption, {name}" for name in gpu.ENGINES}
    assert all(row.startswith("not available: ") for row in rows.values())
