"""The training benchmark measures the trainer's steps."""

import json
import sys

import pytest

from benchmarks import training
from tests.training.small_flickr8k import write_config

FROZEN = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 4, "average": 0.5}
SCST = {**FROZEN, "name": "scst", "objective": "self_critical", "schedule": "constant", "beam_size": 3}
BRIEF = ("--blocks", "2", "--steps", "1", "--settle", "0", "--teaching-steps", "2")
SMALL = ("--images", "30", "--words", "40", "--tokens", "9", "--token-width", "16", "--seed", "3", "--device", "cpu")


@pytest.mark.long
def test_both_kinds_of_steps_are_measured(tmp_path, monkeypatch):
    config, output = write_config(tmp_path / "config.yaml", phases=[FROZEN, SCST]), tmp_path / "training.json"
    monkeypatch.setattr(sys, "argv", ["training", str(config), *BRIEF, *SMALL, "--json", str(output)])
    assert training.main() == 0
    result = json.loads(output.read_text())
    assert result["seed"] == 3
    assert result["phases"].keys() == {"cross_entropy", "self_critical"}
    for phase in result["phases"].values():
        assert phase["images_per_second"]["median"] > 0
