"""The measured phases are those of the experiment file, on generated data."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.training import DEFAULT
from benchmarks.training_steps.phases import measured_phases, missing_networks
from tests.training.small_flickr8k import write_config
from training.configs.schema import ExperimentConfig
from training.engine.experiment import parse_experiment
from training.paths import CHECKOUT

CONFIGS = CHECKOUT / "training" / "configs"
DATA = {"dataset": "coco", "options": {"captions": {"train": "train.json"}}, "minimum_count": 1}


def test_the_last_phase_of_each_kind_is_measured() -> None:
    phases = {phase.kind: phase for phase in measured_phases(DEFAULT, None, compiled=False)}
    assert {kind: phase.phase.name for kind, phase in phases.items()} == {
        "cross_entropy": "fresh",
        "cross_entropy_end_to_end": "end_to_end",
        "self_critical": "self_critical",
    }
    assert {kind: phase.on_photographs for kind, phase in phases.items()} == {
        "cross_entropy": False,
        "cross_entropy_end_to_end": True,
        "self_critical": False,
    }


def test_a_frozen_backbone_that_sees_crops_reads_photographs(tmp_path: Path) -> None:
    phase = {"name": "views", "epochs": 1, "learning_rate": 1e-3, "crop": 0.8}
    (found,) = measured_phases(write_config(tmp_path / "config.yaml", phases=[phase]), None, compiled=False)
    assert found.kind == "cross_entropy_views"
    assert found.on_photographs


def test_the_options_are_those_that_differ_from_the_defaults_and_make_the_same_experiment(tmp_path: Path) -> None:
    for found in measured_phases(write_config(tmp_path / "config.yaml"), "bf16", compiled=True):
        options = found.options(DATA)
        parsed = parse_experiment(options, "options")
        assert isinstance(parsed, ExperimentConfig)
        assert parsed.phases == [found.phase]
        assert parsed.data.max_words == 12
        assert parsed == replace(found.experiment, data=parsed.data, checkpoint_minutes=parsed.checkpoint_minutes)
        assert (parsed.precision, parsed.compile) == ("bf16", True)
        assert not {"task", "seed", "family", "start_from"} & options.keys()
        assert "optimizer" not in options["phases"][0]


@pytest.mark.parametrize("file", sorted(CONFIGS.rglob("*.yaml")), ids=lambda file: file.stem)
def test_phases_of_shipped_experiments_can_be_measured(file: Path) -> None:
    phases = measured_phases(file, None, compiled=False)
    assert phases
    for found in phases:
        parsed = parse_experiment(found.options(DATA), "options")
        assert parsed.phases == [found.phase]


def test_the_captioner_of_a_self_critical_phase_is_taught_with_the_same_batch() -> None:
    phases = {phase.kind: phase for phase in measured_phases(DEFAULT, None, compiled=False)}
    taught = phases["self_critical"].teaching()
    assert taught.phase.objective == "cross_entropy"
    assert taught.phase.images_per_batch == phases["self_critical"].phase.images_per_batch
    assert taught.experiment.model == phases["self_critical"].experiment.model


def test_networks_that_do_not_exist_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMART_CAPTION_DATA", str(tmp_path))
    phases = {phase.kind: phase for phase in measured_phases(DEFAULT, None, compiled=False)}
    missing = missing_networks(phases["cross_entropy_end_to_end"].experiment)
    assert missing == f"{tmp_path}/backbones/tf2_mobilenet_v2_1.0_224_ptq.tflite: no such file"
    (tmp_path / "backbones").mkdir()
    (tmp_path / "backbones" / "tf2_mobilenet_v2_1.0_224_ptq.tflite").touch()
    assert not missing_networks(phases["cross_entropy_end_to_end"].experiment)


def test_a_backbone_that_an_earlier_run_trains_is_the_one_that_it_starts_with() -> None:
    recipe = CONFIGS / "smart_flickr8k_scst.yaml"
    phases = {phase.kind: phase.experiment for phase in measured_phases(recipe, None, compiled=False)}
    assert phases["cross_entropy_end_to_end"].backbone == "tf2_mobilenet_v2_1.0_224_ptq.tflite"
    assert phases["self_critical"].features.store
