"""A run of a captioner whose buffers change at random, which can be killed before a step.

python -m torch.distributed.run --nproc-per-node 2 -m tests.training.engine.killed_run CONFIG DATA FOLDER [STEPS]
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from training.engine.experiment import load_run
from training.engine.trainer import Trainer
from training.models import FAMILIES
from training.models.captioner import BufferPolicy
from training.models.smart import Smart


class Drifting(Smart):
    """SMArT whose logits depend on a bank; hooks and losses change it by numbers that differ between processes."""

    buffer_policies: ClassVar = {"bank": BufferPolicy(synchronise=True), "steps": BufferPolicy()}

    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("bank", torch.zeros(2))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, visual, *words):
        logits = super().forward(visual, *words) * (1 + 0.1 * self.bank.sum().tanh())
        if self.training:
            self.bank += 0.1 * torch.rand(2)
        return logits

    def on_step(self, context):
        self.bank += torch.from_numpy(context.random.normal(size=2)).float()
        self.bank += torch.rand(2)
        self.steps += 1


class StoppedError(Exception):
    """The run was stopped before a step."""


def run(config, data, folder, stop_after=None):
    """Train in this process, or in those of torchrun, and save the weights of the first epoch.

    Raises:
        StoppedError: this process alone has been stopped after ``stop_after`` steps.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "drifting", Drifting)
        trainer = Trainer(load_run(config), data, folder / "run", data / "features", saved_epochs={("first", 1)})
        on_step, steps = trainer.task.on_step, count()

        def counted(context):
            if next(steps) == stop_after:
                if trainer.processes.count == 1:
                    raise StoppedError
                trainer.processes.gather(None)  # all have finished the step before, with its checkpoint
                os.kill(os.getpid(), signal.SIGKILL)
            on_step(context)

        patch.setattr(trainer.task, "on_step", counted)
        trainer.run()
    return trainer


if __name__ == "__main__":
    torch.set_num_threads(1)
    file, data_folder, run_folder = map(Path, sys.argv[1:4])
    run(file, data_folder, run_folder, int(sys.argv[4]) if len(sys.argv) > 4 else None).processes.close()
