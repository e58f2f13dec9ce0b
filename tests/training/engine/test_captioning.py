"""Hyper-parameters of a run that starts from another, and what a step sees of its images."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.small_flickr8k import write_config
from training.engine.experiment import load_run
from training.engine.trained_captioner import TrainedCaptioner
from training.engine.trainer import Trainer
from training.models.captioner import Encoded, Visual
from training.models.smart import Smart

XE = {"name": "frozen", "epochs": 1, "learning_rate": 1e-3, "images_per_batch": 5, "schedule": "constant"}
MODEL = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.1}


def trained(folder: Path, data: Path, *phases: dict[str, Any], **changes: object) -> Trainer:
    folder.mkdir(exist_ok=True)
    config = load_run(write_config(folder / "config.yaml", phases=list(phases), **changes))
    trainer = Trainer(config, data, folder / "run", data / "features")
    trainer.run()
    return trainer


def test_without_options_of_the_model_they_are_those_of_the_model_that_it_starts_from(
    data: Path, tmp_path: Path
) -> None:
    trained(tmp_path / "first", data, XE, model=MODEL)
    first = tmp_path / "first" / "run" / "best.safetensors"
    second = trained(tmp_path / "second", data, XE, start_from=str(first), model={}).captioning.trained
    assert second.captioner.config == TrainedCaptioner.load(first).captioner.config


def test_a_step_sees_a_part_of_the_visual_tokens_and_the_dev_split_all_of_them(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[bool, set[int]] = {True: set(), False: set()}
    encode = Smart.encode

    def counting(self: Smart, visual: Visual) -> Encoded:
        counts[self.training].add(visual.tokens.shape[1])
        return encode(self, visual)

    monkeypatch.setattr(Smart, "encode", counting)
    trained(tmp_path, data, {**XE, "patch_dropout": 0.5})
    assert counts == {True: {25}, False: {49}}
