"""A captioner with buffers of every policy, which its hooks change.

As a program it trains an experiment and writes the values of the buffer ``bank`` in every process to files:
``python -m tests.training.engine.banked_captioner CONFIG --run FOLDER``.
"""

import json
import os
import sys
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from training import train
from training.models import FAMILIES
from training.models.captioner import BufferPolicy, CaptionerConfig, HookContext, Visual
from training.models.smart import Smart


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
        self.contexts: list[HookContext] = []
        self.banks: list[list[float]] = []

    def forward(self, visual: Visual, words: Tensor) -> Tensor:
        self.banks.append(self.bank.tolist())
        return super().forward(visual, words) * (1 + 0.1 * self.bank.sum().tanh())

    def on_epoch(self, context: HookContext) -> None:
        self.bank += torch.from_numpy(context.random.normal(size=2)).float()

    def on_step(self, context: HookContext) -> None:
        self.contexts.append(context)
        self.bank += torch.rand(2)  # another number in every process
        self.steps += 1


class Watched(Banked):
    """A bank that the test can read from outside."""

    instances: ClassVar[list["Watched"]] = []

    def __init__(self, config: CaptionerConfig) -> None:
        super().__init__(config)
        Watched.instances.append(self)


if __name__ == "__main__":
    FAMILIES["banked"] = Watched
    status = train.main()
    run = Path(sys.argv[sys.argv.index("--run") + 1])
    (run / f"banks-{os.environ['RANK']}.json").write_text(json.dumps(Watched.instances[0].banks))
    sys.exit(status)
