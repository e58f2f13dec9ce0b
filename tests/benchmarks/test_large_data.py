"""The benchmark of large data reports speeds, seconds and memory for each number of images."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import large_data


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command, with all measurements in this process; a new one would import PyTorch for each of them."""
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)  # of this process, which runs other tests
    monkeypatch.setattr(large_data, "in_fresh_process", lambda function, *arguments: function(*arguments))

    def command(*options: object) -> int:
        monkeypatch.setattr(sys, "argv", ["large_data", *map(str, options)])
        return large_data.main()

    return command


def test_speeds_seconds_and_memory_are_reported_for_each_number_of_images(
    run: Callable[..., int], tmp_path: Path
) -> None:
    options = ("--regions", 3, "--width", 4, "--words", 50, "--threads", 1, "--rounds", 2)
    sizes = ("--images", 100, "--images", 120, "--alternatives-up-to", 100)
    assert run(*sizes, *options, "--folder", tmp_path, "--json", tmp_path / "result.json") == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert [size["images"] for size in result["sizes"]] == [100, 120]
    assert [size["speeds"].keys() for size in result["sizes"]] == [
        {"store", "sequential_read", "npz", "hdf5", "memory_map"},
        {"store", "sequential_read"},
    ]
    for size in result["sizes"]:
        for epochs in size["speeds"].values():
            assert {"cold", "warm"} <= epochs.keys()
            assert all(epoch["images_per_second"] > 0 for epoch in epochs.values())
        assert size["start_seconds"]["first_run"].keys() == size["start_seconds"]["later_runs"].keys()
        assert size["memory_mb"]["after_an_epoch"]["peak"] >= size["memory_mb"]["before_an_epoch"]["private"] > 0
    assert result["versions"]["torch"] != "not installed"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_medians_of_nested_results_are_taken_number_by_number() -> None:
    results = [{"cold": {"speed": speed, "seconds": -speed}, "start": 2 * speed} for speed in (5, 1, 4)]
    assert large_data.medians(results) == {"cold": {"speed": 4, "seconds": -4}, "start": 8}


def test_data_that_does_not_fit_on_the_disk_is_refused_in_a_sentence(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(large_data.shutil, "disk_usage", lambda path: SimpleNamespace(free=1e9))
    assert run("--images", 100_000, "--folder", tmp_path) == 1
    assert "100000 images need 16.3 GB, and 1.0 GB are free; give another --folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
