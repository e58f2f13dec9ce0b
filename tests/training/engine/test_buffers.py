"""Buffers of a captioner in checkpoints, in the average of the weights and in several processes; hooks."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.engine.banked_captioner import Banked
from tests.training.processes import run_in_processes
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint
from training.engine.experiment import load_run
from training.engine.trained_captioner import TrainedCaptioner
from training.engine.trainer import Trainer
from training.models import FAMILIES

PHASE = {"name": "only", "epochs": 2, "learning_rate": 1e-3, "images_per_batch": 4, "average": 0.75}


@pytest.fixture(autouse=True)
def family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "banked", Banked)


def written(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    model = {"d_model": 32, "heads": 4, "d_ff": 64, "memory_slots": 4, "dropout": 0.1}
    return write_config(folder / "config.yaml", family="banked", phases=[{**PHASE, **changes}], model=model)


def trainer_of(folder: Path, data: Path, **changes: Any) -> Trainer:
    return Trainer(load_run(written(folder, **changes)), data, folder / "run", folder / "features")


def captioner_of(trainer: Trainer) -> Banked:
    assert isinstance(trainer.captioning.trained.captioner, Banked)
    return trainer.captioning.trained.captioner


def test_hooks_get_the_place_in_the_run(data: Path, tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, data)
    trainer.run()
    contexts = captioner_of(trainer).contexts
    places = [(context.phase, context.epoch, context.step) for context in contexts]
    assert places == [("only", epoch, step) for epoch in range(2) for step in range(3)]
    assert {context.steps_per_epoch for context in contexts} == {3}
    assert len({context.random.random() for context in contexts}) == 6


def test_the_average_of_the_weights_has_the_latest_buffers(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks: list[Tensor] = []
    on_step = Banked.on_step

    def recorded(captioner: Banked, context: Any) -> None:
        on_step(captioner, context)
        banks.append(captioner.bank.clone())

    monkeypatch.setattr(Banked, "on_step", recorded)
    trainer = trainer_of(tmp_path, data, epochs=1)
    trainer.run()
    captioner = captioner_of(trainer)  # has the average when the phase is over
    assert torch.equal(captioner.bank, banks[-1])
    assert captioner.steps.item() == 3
    kept = TrainedCaptioner.load(tmp_path / "run" / "best.safetensors").captioner
    assert isinstance(kept, Banked)
    assert torch.equal(kept.bank, banks[-1])


@pytest.mark.parametrize("stopped_after", [2, 3, 5])
def test_a_resumed_run_has_the_same_buffers_as_one_that_was_not_stopped(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_after: int
) -> None:
    trainer_of(tmp_path / "whole", data).run()
    on_step, calls = Banked.on_step, []

    def stops(captioner: Banked, context: Any) -> None:
        if len(calls) == stopped_after:
            raise KeyboardInterrupt
        calls.append(context)
        on_step(captioner, context)

    with monkeypatch.context() as patched:
        patched.setattr(Banked, "on_step", stops)
        with pytest.raises(KeyboardInterrupt):
            trainer_of(tmp_path / "cut", data).run()
    trainer_of(tmp_path / "cut", data).run()
    whole, cut = (load_checkpoint(tmp_path / name / "run" / "checkpoint.safetensors")[0] for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(cut[name], tensor) for name, tensor in whole.items())


@pytest.mark.long
def test_a_synchronised_buffer_has_the_first_processs_value_in_every_process(data: Path, tmp_path: Path) -> None:
    config = written(tmp_path, epochs=1)
    arguments = (config, "--run", tmp_path / "run", "--threads", 1, "--device", "cpu")
    done = run_in_processes(2, "tests.training.engine.banked_captioner", *arguments, SMART_CAPTION_DATA=str(data))
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / "run" / f"banks-{rank}.json").read_text()) for rank in (0, 1))
    assert len(first) == 4  # three steps, and the last batch once more
    assert first == second
    assert len({tuple(bank) for bank in first}) == 3
