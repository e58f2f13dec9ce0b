"""A model of next to no work: a linear layer learns y = 2 x from the numbers of its images.

As a program it trains an experiment: ``python -m tests.training.engine.linear_task CONFIG --run FOLDER``.
"""

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from training import train
from training.checkpoint import load_checkpoint, save_checkpoint
from training.configs.schema import ExperimentConfig
from training.engine import trainer
from training.engine.dev_evaluation import DevScores
from training.engine.distributed import Processes
from training.engine.task import TrainedModule
from training.models.captioner import HookContext
from training.objectives.objective import BatchLoss

IMAGES = 22


class LinearTask:
    """In place of :class:`training.engine.task.CaptionTask`; ``bad_image`` has a loss that is not finite."""

    max_loss = 1e6
    pairs = IMAGES
    bad_image: ClassVar[int | None] = None

    def __init__(
        self, config: ExperimentConfig, data: Path, cache: Path, processes: Processes, left_out: object = None
    ) -> None:
        self.images = {"train": [str(image) for image in range(IMAGES)]}
        self.layer = nn.Linear(1, 1)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)
        self._learning_rate, self._processes = config.phases[0].learning_rate, processes

    def prepare(self) -> None:
        self.layer.to(self._processes.device)

    def modules_to_train(self, phase: int) -> dict[str, TrainedModule]:
        return {"layer": TrainedModule(self.layer, self._learning_rate)}

    def begin_phase(self, phase: int) -> None:
        pass

    def begin_epoch(self, epoch: int, random: np.random.Generator) -> np.ndarray:
        return np.arange(IMAGES)

    def loss_weights(self, images: np.ndarray) -> np.ndarray:
        return np.ones(len(images))

    def costs(self, images: np.ndarray) -> np.ndarray:
        return np.ones(len(images))

    def read(self, images: np.ndarray) -> Tensor:
        return torch.from_numpy(images[:, None] / IMAGES).float()

    def loss(self, inputs: Tensor, images: np.ndarray) -> BatchLoss:
        loss = (self.layer(inputs) - 2 * inputs).square().mean()
        if self.layer.training and self.bad_image in images:
            loss = loss * math.nan
        return BatchLoss(loss, reward=float(images.mean()))

    def on_epoch(self, context: HookContext) -> None:
        pass

    def on_step(self, context: HookContext) -> None:
        pass

    def changing_buffers(self) -> dict[str, Tensor]:
        return {}

    def evaluate(self, epochs_left: int) -> DevScores:
        return DevScores({"cider": 0.0, "bleu_4": 0.0})

    def tensors(self) -> dict[str, Tensor]:
        return self.layer.state_dict()

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self.layer.load_state_dict({name: tensors[name] for name in ("weight", "bias")})

    def save(self, path: Path, epoch: Mapping[str, Any]) -> None:
        save_checkpoint(path, self.tensors(), {})


def saved_weights(run: Path) -> dict[str, Tensor]:
    """Weights and state of the optimizer in the checkpoint of a run."""
    return load_checkpoint(run / "checkpoint.safetensors")[0]


def thread_names() -> list[str]:
    """Names of the threads of this process, those of libraries included."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


if __name__ == "__main__":
    LinearTask.bad_image = int(os.environ.get("BAD_IMAGE", "-1"))
    trainer.CaptionTask = LinearTask  # type: ignore[assignment,misc]
    status = train.main()
    # One string is one write, also with PYTHONUNBUFFERED: the lines of two processes must not mix.
    print(f"threads left: {[name for name in thread_names() if 'gloo' in name]}\n", end="", flush=True)
    sys.exit(status)
