"""A run whose processes write down what each of them computes, and which can be killed before a step.

    python -m torch.distributed.run --nproc-per-node 2 -m tests.training.engine.observed_run CONFIG DATA FOLDER [STEPS]

``FOLDER`` gets the run and, for every process of every start, ``observed/START-RANK.jsonl``.
"""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from training.engine.dev_evaluation import DevScores
from training.engine.experiment import load_run
from training.engine.trainer import Trainer
from training.models import FAMILIES
from training.models.captioner import BufferPolicy, Captioner, CaptionerConfig, HookContext, Visual
from training.models.smart import Smart
from training.objectives.objective import BatchLoss


class Banked(Smart):
    """SMArT whose logits depend on a bank that every hook changes in a way that cannot be repeated."""

    buffer_policies: ClassVar[dict[str, BufferPolicy]] = {
        "bank": BufferPolicy(synchronise=True),
        "steps": BufferPolicy(),
    }
    bank: Tensor
    steps: Tensor

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__(config)  # type: ignore[arg-type]
        self.register_buffer("bank", torch.zeros(2))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, visual: Visual, words: Tensor) -> Tensor:
        return super().forward(visual, words) * (1 + 0.1 * self.bank.sum().tanh())

    def on_epoch(self, context: HookContext) -> None:
        self.bank += torch.from_numpy(context.random.normal(size=2)).float()

    def on_step(self, context: HookContext) -> None:
        self.bank += torch.rand(2)  # another number in every process
        self.steps += 1


class Drifting(Banked):
    """Every hook and every loss changes the bank by numbers that differ between processes."""

    def forward(self, visual: Visual, *words: Any) -> Tensor:
        logits = super().forward(visual, *words)
        if self.training:
            self.bank += 0.1 * torch.rand(2)
        return logits


class StoppedError(Exception):
    """The run was stopped before a step."""


class Observer:
    """Writes a line for every loss and every evaluation."""

    def __init__(self, trainer: Trainer, path: Path, stop_after: int | None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._trainer, self._stop_after, self._steps = trainer, stop_after, 0
        self._place: list[Any] = []
        self._stream = path.open("w", encoding="utf-8")

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Observe the model of the trainer."""
        captioning = self._trainer.task
        on_step, loss, evaluate = captioning.on_step, captioning.loss, captioning.evaluate

        def observed_step(context: HookContext) -> None:
            if self._steps == self._stop_after:
                self._stop()
            self._steps += 1
            self._place = [context.phase, context.epoch, context.step]
            on_step(context)

        def observed_loss(inputs: Any, images: np.ndarray) -> BatchLoss:
            result = loss(inputs, images)
            if torch.is_grad_enabled():
                self._write(images=images.tolist())
            return result

        def observed_evaluation(epochs_left: int) -> DevScores:
            scores = evaluate(epochs_left)  # with the averages of the weights in the modules
            digest = hashlib.sha256()
            for name, tensor in sorted(captioning.tensors().items()):
                digest.update(name.encode() + tensor.numpy().tobytes())
            progress = self._trainer.progress
            self._write(
                weights=digest.hexdigest(), scores=scores, best=progress.best_score, stale=progress.stale_epochs
            )
            return scores

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(captioning, "on_step", observed_step)
            patch.setattr(captioning, "loss", observed_loss)
            patch.setattr(captioning, "evaluate", observed_evaluation)
            yield

    def _write(self, **values: Any) -> None:
        self._stream.write(json.dumps({"place": self._place, **values}) + "\n")
        self._stream.flush()

    def _stop(self) -> None:
        processes = self._trainer.processes
        if processes.count == 1:
            raise StoppedError
        processes.gather(None)  # all have finished the step before, with its checkpoint
        os.kill(os.getpid(), signal.SIGKILL)


def run(config: Path, data: Path, folder: Path, stop_after: int | None = None) -> Trainer:
    """Train in this process, or in those of torchrun, and save the weights of the first epoch.

    Raises:
        StoppedError: this process alone has been stopped after ``stop_after`` steps.
    """
    rank, start = os.environ.get("RANK", "0"), os.environ.get("START", "0")
    with pytest.MonkeyPatch.context() as patch:
        family: type[Captioner] = Drifting
        patch.setitem(FAMILIES, "drifting", family)
        trainer = Trainer(load_run(config), data, folder / "run", data / "features", saved_epochs={("first", 1)})
        observer = Observer(trainer, folder / "observed" / f"{start}-{rank}.jsonl", stop_after)
        with observer.installed():
            trainer.run()
    return trainer


if __name__ == "__main__":
    torch.set_num_threads(1)
    file, data_folder, run_folder = map(Path, sys.argv[1:4])
    run(file, data_folder, run_folder, int(sys.argv[4]) if len(sys.argv) > 4 else None).processes.close()
