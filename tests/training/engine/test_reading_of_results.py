"""Losses that are read every few steps: the same numbers, the first bad step, and checkpoints of good weights."""

import json
import math
from types import SimpleNamespace

import pytest
import torch

from tests.training.engine.linear_task import LinearTask, saved_weights
from tests.training.small_flickr8k import write_config
from training.checkpoint import load_checkpoint
from training.engine import trainer as module
from training.engine.distributed import Processes
from training.engine.experiment import load_run
from training.engine.trainer import Trainer
from training.errors import TrainingError

PHASE = {"name": "only", "epochs": 2, "learning_rate": 0.1, "schedule": "constant", "images_per_batch": 2}


@pytest.fixture(autouse=True)
def linear_task(monkeypatch):
    monkeypatch.setattr(module, "CaptionTask", LinearTask)


def written(folder, log_every, **changes):
    folder.mkdir(exist_ok=True)
    return write_config(folder / "config.yaml", **{"phases": [PHASE], "log_every": log_every, **changes})


def trained(folder, log_every, **changes):
    run = folder / "run"
    Trainer(load_run(written(folder, log_every, **changes)), folder, run, folder).run()
    return run


def log_of(run):
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{key: entry[key] for key in ("phase", "epoch", "loss", "reward", "learning_rate")} for entry in entries]


def test_the_epochs_do_not_depend_on_how_often_losses_are_read(tmp_path):
    every, seldom, once = (trained(tmp_path / str(count), count) for count in (1, 4, 100))
    assert log_of(every) == log_of(seldom) == log_of(once)
    first, *others = map(saved_weights, (every, seldom, once))
    assert all(torch.equal(other[name], tensor) for other in others for name, tensor in first.items())


def stop_at(monkeypatch, calls):
    """Interrupt the run in its n-th step, counted over epochs."""
    differentiate = module.GradientStep.differentiate
    left = [calls]

    def counted(*arguments):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return differentiate(*arguments)

    monkeypatch.setattr(module.GradientStep, "differentiate", counted)


def test_gradients_that_overflow_in_fp16_are_left_out_and_a_resumed_run_has_the_same_scale(tmp_path, monkeypatch):
    # The first scales are so large that the gradients of the first steps overflow.
    monkeypatch.setattr(
        Processes, "new_scaler", lambda self: torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=3)
    )
    folder = tmp_path / "whole"
    first = trained(folder, 1, precision="fp16")
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=iter(range(0, 10**6, 600)).__next__))
    stopped = {}
    for stop in (3, 9):
        cut = tmp_path / str(stop)
        with monkeypatch.context() as patched:
            stop_at(patched, stop)
            with pytest.raises(KeyboardInterrupt):
                trained(cut, 1, precision="fp16")
        stopped[stop] = load_checkpoint(cut / "run" / "checkpoint.safetensors")[1]["scaler"]["scale"]
        assert log_of(trained(cut, 1, precision="fp16")) == log_of(first)
        assert all(torch.equal(saved_weights(cut / "run")[name], t) for name, t in saved_weights(first).items())
    assert stopped[9] < stopped[3] < 2.0**127


@pytest.mark.parametrize(
    ("log_every", "bad_image", "factor", "problem"),
    [
        (1, 0, math.nan, "the loss is nan"),
        (3, 13, -math.inf, "the loss is -inf"),
        (3, 21, 1e12, r"the loss is \S+: it has exploded"),
        (100, 7, math.nan, "the loss is nan"),
    ],
)
def test_the_first_bad_step_is_named_and_no_checkpoint_has_its_weights(
    tmp_path, monkeypatch, log_every, bad_image, factor, problem
):
    monkeypatch.setattr(LinearTask, "bad_image", bad_image)
    monkeypatch.setattr(LinearTask, "bad_factor", factor)
    with pytest.raises(TrainingError, match=rf"{problem}, at only 1/2, step {bad_image // 2}; the last good"):
        trained(tmp_path, log_every)
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    good = bad_image // 2 // log_every * log_every
    if checkpoint.exists():
        tensors, state = load_checkpoint(checkpoint)
        assert all(tensor.isfinite().all() for tensor in tensors.values())
        assert state["step"] <= good
        assert math.isfinite(state["loss_sum"])
    assert not (tmp_path / "run" / "best.safetensors").exists()
