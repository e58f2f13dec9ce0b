"""The training benchmark measures the trainer's steps on several sides, and reports them with their environment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import training
from benchmarks.training_steps.sides import MeasurementError, extract_commit
from tests.training.small_flickr8k import write_config
from training.paths import CHECKOUT

FROZEN = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4, "average": 0.5}
SCST = {**FROZEN, "name": "scst", "objective": "self_critical", "schedule": "constant", "beam_size": 3}
OPTIONS = ("--blocks", "2", "--steps", "1", "--teaching-steps", "2", "--threads", "1", "--device", "cpu")
SMALL = ("--images", "30", "--words", "40", "--tokens", "9", "--token-width", "16", "--seed", "3")


@pytest.fixture(scope="module")
def _history() -> None:
    if subprocess.run(["git", "-C", str(CHECKOUT), "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        pytest.skip("needs the repository's history")


@pytest.mark.long
@pytest.mark.usefixtures("_history")
def test_trainer_other_commit_and_published_recipe_are_measured_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, output = write_config(tmp_path / "config.yaml", phases=[FROZEN, SCST]), tmp_path / "training.json"
    command = [str(config), *OPTIONS, *SMALL, "--against", "HEAD", "--published", "--profile", "--json", str(output)]
    monkeypatch.setattr(sys, "argv", ["training", *command])
    assert training.main() == 0
    result = json.loads(output.read_text())
    assert result["seed"] == 3
    assert result["hardware"]["processor"]
    assert result["versions"]["torch"] != "not installed"
    assert result["phases"].keys() == {"cross_entropy", "self_critical"}
    for phase in result["phases"].values():
        for side in phase["sides"].values():
            assert len(side["block_ms"]) == 2
            assert side["images_per_second"]["median"] > 0
            assert sum(part["share"] for part in side["parts"].values()) == pytest.approx(1, abs=0.01)
        for name in ("working tree", "HEAD"):
            parts = {"waiting for the batch", "backward", "clipping", "optimizer", "moving average", "logging"}
            assert parts <= phase["sides"][name]["parts"].keys()
            assert len(phase["sides"][name]["first_losses"]) == 5
    scst = result["phases"]["self_critical"]
    assert scst["sides"].keys() == {"working tree", "HEAD", "published fp32"}
    assert scst["times_faster_than"].keys() == scst["reward_times_faster_than"].keys() == {"HEAD", "published fp32"}
    assert {"sampling search", "reward", "loss"} <= scst["sides"]["working tree"]["parts"].keys()
    assert all(1 <= side["caption_words"]["mean"] <= 12 for side in scst["sides"].values())
    assert scst["first_weights"]["steps"] == 2
    printed = capsys.readouterr().out
    assert "| self_critical | published fp32 |" in printed
    assert "| part | working tree, ms | share | HEAD, ms | share |" in printed


@pytest.mark.usefixtures("_history")
@pytest.mark.parametrize("commit", ["no-such-commit", "--help"])
def test_an_unknown_commit_is_refused(commit: str, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=f"{commit}: no such commit"):
        extract_commit(commit, tmp_path)


def test_an_unknown_phase_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path / "config.yaml", phases=[FROZEN, SCST])
    monkeypatch.setattr(sys, "argv", ["training", str(config), "--phase", "end_to_end"])
    assert training.main() == 1
    assert capsys.readouterr().err == (
        "error: --phase end_to_end: the experiment file has cross_entropy, self_critical\n"
    )


@pytest.mark.needs_gpu
def test_the_work_of_the_gpu_is_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.cuda.is_available():
        pytest.skip(f"torch {torch.__version__} has no CUDA here")
    config, output = write_config(tmp_path / "config.yaml", phases=[FROZEN, SCST]), tmp_path / "training.json"
    command = [str(config), *OPTIONS, *SMALL, "--device", "cuda", "--settle", "1", "--profile", "--json", str(output)]
    monkeypatch.setattr(sys, "argv", ["training", *command])
    assert training.main() == 0
    for phase in json.loads(output.read_text())["phases"].values():
        activity = phase["sides"]["working tree"]["gpu"]
        assert 0 < activity["busy_share"] <= 1
        assert activity["kernels"] > 10
        assert activity["host_waits"] >= 1
