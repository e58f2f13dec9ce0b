"""The training benchmark measures the trainer's steps."""

import json
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks import training
from benchmarks.training import DEFAULT, measured_phases, seconds_per_step
from tests.training.small_flickr8k import write_config

FROZEN = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4, "average": 0.5}
SCST = {**FROZEN, "name": "scst", "objective": "self_critical", "schedule": "constant", "beam_size": 3}
OPTIONS = (
    "--blocks",
    "2",
    "--steps",
    "1",
    "--settle",
    "0",
    "--teaching-steps",
    "2",
    "--threads",
    "1",
    "--device",
    "cpu",
)
SMALL = ("--images", "30", "--words", "40", "--tokens", "9", "--token-width", "16", "--seed", "3")


@pytest.mark.long
def test_both_kinds_of_steps_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, output = write_config(tmp_path / "config.yaml", phases=[FROZEN, SCST]), tmp_path / "training.json"
    monkeypatch.setattr(sys, "argv", ["training", str(config), *OPTIONS, *SMALL, "--json", str(output)])
    assert training.main() == 0
    result = json.loads(output.read_text())
    assert result["seed"] == 3
    assert result["phases"].keys() == {"cross_entropy", "self_critical"}
    for phase in result["phases"].values():
        assert phase["images_per_second"]["median"] > 0


def test_the_time_of_a_step_begins_after_the_settling_steps_and_ends_the_run() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.ones(1)
    optimizer, durations = torch.optim.SGD([parameter]), iter([0.2, 0.2, 0.05, 0.05])

    def run() -> None:
        for duration in durations:
            time.sleep(duration)
            optimizer.step()

    assert 0.05 <= seconds_per_step(run, settling_steps=1, steps=2, device=torch.device("cpu")) < 0.15
    with pytest.raises(RuntimeError, match="too few images"):
        seconds_per_step(lambda: None, settling_steps=0, steps=1, device=torch.device("cpu"))


def test_an_unknown_phase_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path / "config.yaml", phases=[FROZEN, SCST])
    monkeypatch.setattr(sys, "argv", ["training", str(config), "--phase", "end_to_end"])
    assert training.main() == 1
    assert capsys.readouterr().err == (
        "error: --phase end_to_end: the experiment file has cross_entropy, self_critical\n"
    )


def test_the_last_phase_of_each_kind_is_measured() -> None:
    phases = measured_phases(DEFAULT)
    assert {kind: (experiment.phases[0].name, bool(experiment.features)) for kind, experiment in phases.items()} == {
        "cross_entropy": ("fresh", True),
        "cross_entropy_end_to_end": ("end_to_end", False),
        "self_critical": ("self_critical", True),
    }


def test_a_frozen_backbone_that_sees_crops_reads_photographs(tmp_path: Path) -> None:
    phase = {"name": "views", "epochs": 1, "learning_rate": 1e-3, "crop": 0.8}
    phases = measured_phases(write_config(tmp_path / "config.yaml", phases=[phase]))
    assert {kind: bool(experiment.features) for kind, experiment in phases.items()} == {"cross_entropy_views": False}
