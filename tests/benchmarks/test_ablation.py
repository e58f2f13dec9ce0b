"""The ablation trains every value with every seed and compares them on the dev split."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.ablation import main
from tests.training.small_flickr8k import make_data, write_config
from training import train

PHASES = [{"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 6}]


def ablation(monkeypatch: pytest.MonkeyPatch, data: Path, config: Path, *arguments: str) -> int:
    monkeypatch.setenv("SMART_CAPTION_DATA", str(data))
    monkeypatch.setattr(sys, "argv", ["ablation", str(config), *arguments])
    return main()


def train_in_this_process(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[str]:
    """Stand in for subprocess.run without the start of a process."""
    with pytest.MonkeyPatch.context() as patch:
        assert command[1:3] == ["-m", "training.train"]
        patch.setattr(sys, "argv", ["train", *command[3:]])
        return subprocess.CompletedProcess(command, train.main())


@pytest.mark.long
def test_every_value_is_trained_with_every_seed_and_a_second_call_trains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config, output = write_config(tmp_path / "config.yaml", phases=PHASES), tmp_path / "ablation.json"
    arguments = ["--vary", "model.memory_slots=0,4", "--seeds", "1", "--runs", str(tmp_path / "runs")]
    arguments += ["--json", str(output)]
    data = make_data(tmp_path / "data")
    assert ablation(monkeypatch, data, config, *arguments) == 0, capfd.readouterr().err
    result = json.loads(output.read_text())
    assert [entry["value"] for entry in result["results"]] == [0, 4]
    assert all([run["seed"] for run in entry["runs"]] == [1] for entry in result["results"])
    assert all(0 <= entry["cider"]["mean"] <= 10 for entry in result["results"])
    assert all(run["seconds"] > 0 for entry in result["results"] for run in entry["runs"])
    logs = {log: log.read_text() for log in (tmp_path / "runs").rglob("log.jsonl")}
    assert len(logs) == 2
    monkeypatch.setattr(subprocess, "run", train_in_this_process)
    assert ablation(monkeypatch, data, config, *arguments) == 0
    assert {log: log.read_text() for log in logs} == logs


@pytest.mark.parametrize(
    ("vary", "sentence"),
    [
        ("model.memory_slots", "--vary wants"),
        ("speed=1,2", "unknown key 'speed'"),
        ("phases.0.crop=0.7,2", "phases[0]: crop must be more than 0 and at most 1, not 2"),
        ("phases.1.crop=0.7", "--vary phases.1.crop: 1 should be one of 0 to 0"),
    ],
)
def test_a_malformed_option_is_refused_before_anything_is_trained(
    tmp_path: Path, vary: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path / "config.yaml", phases=PHASES)
    assert ablation(monkeypatch, tmp_path, config, "--vary", vary, "--runs", str(tmp_path / "runs")) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("*.safetensors"))
