"""The benchmark of the families trains, exports and measures every captioner of its plan."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from benchmarks import family
from benchmarks.family import PLAN, read_plan, write_experiments
from export import graphs, source
from tests.export.command import TRACE, VISION
from tests.training.small_flickr8k import make_data
from training.errors import ConfigError
from training.models.families import SINGLE_FAMILIES

PHASE = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 6}
SMALL_PLAN = {
    "recipe": {
        "backbone": "mobilenetv2_float32.onnx",
        "data": {"dataset": "flickr8k", "minimum_count": 1, "max_words": 8},
        "phases": [PHASE],
    },
    "captioners": {
        "ours": {"family": "smart", "model": {"d_model": 32, "heads": 4, "d_ff": 64}},
        "lstm": {"family": "up_down", "model": {"lstm_units": 24, "attention_units": 16, "embedding_width": 20}},
    },
}


def run_in_this_process(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run the commands without the start of a process for each."""

    def run(module: str, *arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        assert importlib.import_module(module).main() == 0

    return run


@pytest.mark.long
def test_every_captioner_of_a_plan_is_trained_scored_and_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, output = tmp_path / "plan.yaml", tmp_path / "family.json"
    plan.write_text(yaml.safe_dump(SMALL_PLAN, sort_keys=False))
    monkeypatch.setenv("SMART_CAPTION_DATA", str(make_data(tmp_path / "data")))
    monkeypatch.setattr(family, "_run", run_in_this_process(monkeypatch))
    monkeypatch.setattr(graphs, "trace_captioner", TRACE)
    monkeypatch.setattr(source, "export_vision", VISION)
    monkeypatch.setenv("PATH", str(tmp_path))  # without Java, which this is not about
    monkeypatch.delenv("JAVA_HOME", raising=False)
    arguments = ["--seeds", "1,2", "--rounds", "1", "--runs", str(tmp_path / "runs"), "--json", str(output)]
    monkeypatch.setattr(sys, "argv", ["family", str(plan), *arguments])
    assert family.main() == 0, capsys.readouterr().err
    result = json.loads(output.read_text())
    assert list(result["captioners"]) == ["ours", "lstm"]
    for captioner in result["captioners"].values():
        cider = captioner["scores"]["cider"]
        low, high = cider["interval"]
        assert len(cider["seeds"]) == 2
        assert low <= cider["mean"] <= high
        assert captioner["million_parameters"] > 0
        assert captioner["gflop_per_caption"] > 0
        assert captioner["cpu_ms_median"] > 0
        assert captioner["private_memory_mb"] > 1

    # The same command again scores nothing anew; with fewer seeds it does.
    commands: list[str] = []
    monkeypatch.setattr(family, "_run", lambda module, *arguments: commands.append(module))
    monkeypatch.setattr(sys, "argv", ["family", str(plan), *arguments])
    assert family.main() == 0
    assert "training.evaluate" not in commands
    assert json.loads(output.read_text())["captioners"]["ours"]["scores"] == result["captioners"]["ours"]["scores"]
    monkeypatch.setattr(sys, "argv", ["family", str(plan), *arguments, "--seeds", "2"])
    assert family.main() == 0
    assert "training.evaluate" in commands


def test_the_plan_of_layers_and_memory_has_valid_experiments_with_the_recipe_of_the_families(tmp_path: Path) -> None:
    recipe, captioners = read_plan(PLAN.with_name("layers_and_memory.yaml"), None)
    assert recipe == read_plan(PLAN, None)[0]
    for name, captioner in captioners.items():
        assert len(write_experiments(recipe, name, captioner, [1], tmp_path)) == 1


def test_the_plan_has_a_valid_experiment_for_every_family(tmp_path: Path) -> None:
    recipe, captioners = read_plan(PLAN, None)
    published_with_weights = {"git", "blip", "vision_encoder_decoder"}  # benchmarks.published_models measures these
    trained_here = set(SINGLE_FAMILIES) - published_with_weights
    assert {captioner["family"] for captioner in captioners.values()} == trained_here
    for name, captioner in captioners.items():
        assert len(write_experiments(recipe, name, captioner, [1], tmp_path)) == 1


def test_a_captioner_that_the_plan_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no captioner 'blip'; it has"):
        read_plan(PLAN, ["blip"])
