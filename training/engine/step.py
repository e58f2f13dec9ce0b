"""Loss and gradient of a batch over all processes."""

import math
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from training.configs.schema import TrainingPhaseConfig
from training.data.loading import divide_batch
from training.engine.distributed import Processes
from training.engine.optimizers import clip_gradient
from training.engine.tasks.task import Task
from training.errors import TrainingError
from training.objectives.objective import BatchLoss


class MicroBatch(NamedTuple):
    """The part of a batch that one process computes in one pass."""

    images: np.ndarray
    """(B,) integers, indices in the training split."""
    inputs: Any
    """Inputs of the loss, as the task has read them."""
    weight: float
    """Weight of this part's mean loss in the mean of the batch; 0 for a process without images in this step."""


class StepResult(NamedTuple):
    """Loss, reward and gradient of a whole batch."""

    loss: float
    reward: float | None
    gradient_norms: dict[str, float]
    """By module, before clipping."""


class _Forward(nn.Module):
    """Computes the loss as one module with all parameters that learn, as summing gradients over processes needs."""

    def __init__(self, task: Task, learning: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.learning = nn.ModuleDict(learning)
        self._task = task

    def forward(self, inputs: Any, images: np.ndarray) -> BatchLoss:
        return self._task.loss(inputs, images)


class GradientStep:
    """Computes the gradients of one phase; they equal those of one process with the whole batch, except for dropout."""

    def __init__(
        self, processes: Processes, task: Task, learning: Mapping[str, nn.Module], phase: TrainingPhaseConfig
    ) -> None:
        """
        Args:
            processes: processes of the run.
            task: computes the loss.
            learning: modules of the task that learn in this phase, by name.
            phase: accumulation and clipping.
        """
        self._processes, self._task, self._phase = processes, task, phase
        self._parameters = {name: list(module.parameters()) for name, module in learning.items()}
        self._forward = processes.wrap(_Forward(task, learning))
        self._parts: list[MicroBatch] = []

    def read(self, images: np.ndarray, random: np.random.Generator) -> list[MicroBatch]:
        """Read the parts of a batch that this process computes; may be called in another thread.

        Args:
            images: (B,) indices of the whole batch.
            random: generator of this batch.

        Raises:
            DataError: an image cannot be read.
        """
        weights = self._task.loss_weights(images)
        rank, count = self._processes.rank, self._processes.count
        parts = []
        for own in divide_batch(images, self._task.costs(images), self._phase.accumulate, rank, count):
            weight = float(self._task.loss_weights(own).sum() / weights.sum())
            # Every process must take part in summing the gradients: one without images computes a loss of weight 0.
            own = own if len(own) else images[:1]
            parts.append(MicroBatch(own, self._task.read(own, random), weight))
        return parts

    def differentiate(self, batches: Iterator[list[MicroBatch]]) -> StepResult:
        """Add the clipped gradient of the next batch to the parameters.

        Args:
            batches: results of :meth:`read`.

        Raises:
            TrainingError: loss or gradient is not finite, or the loss has exploded. The weights are unchanged.
            DataError: an image cannot be read.
        """
        processes = self._processes
        with processes.fail_in_all():
            self._parts = next(batches)
        losses = []
        for left, part in zip(range(len(self._parts), 0, -1), self._parts, strict=True):
            with processes.without_gradient_sum(self._forward) if left > 1 else nullcontext():
                losses.append(self._loss(part))
                processes.backward(losses[-1].loss * part.weight)
        norms = [clip_gradient(parameters, self._phase.clipping) for parameters in self._parameters.values()]
        return self._result(losses, norms)

    def verify(self) -> None:
        """Compute the loss of the last batch again, with the weights after the step.

        Raises:
            TrainingError: the loss is not finite or has exploded, so the weights must not be kept.
        """
        with torch.no_grad():
            losses = [self._loss(part) for part in self._parts]
        if losses:
            self._result(losses, [])

    def _loss(self, part: MicroBatch) -> BatchLoss:
        loss: BatchLoss = self._forward(self._processes.to_device(part.inputs), part.images)
        return loss

    def _result(self, losses: list[BatchLoss], norms: list[Tensor]) -> StepResult:
        """Combine the results of all processes; every process gets the same."""
        processes, weights = self._processes, [part.weight for part in self._parts]
        weighted = list(zip(losses, weights, strict=True))
        loss = torch.stack([part.loss.detach() * weight for part, weight in weighted]).sum()
        values = torch.stack([loss, *(norm / processes.count for norm in norms)]).tolist()  # waits for the device once
        rewards = [part.reward * weight for part, weight in weighted if part.reward is not None]
        total, reward, *lengths = processes.sum([values[0], sum(rewards), *values[1:]])
        result = StepResult(total, reward if rewards else None, dict(zip(self._parameters, lengths, strict=False)))
        if problem := self._problem(result):
            processes.fail(TrainingError(problem))
        return result

    def _problem(self, result: StepResult) -> str | None:
        if not math.isfinite(result.loss):
            return f"the loss is {result.loss}"
        if abs(result.loss) > self._task.max_loss:
            return f"the loss is {result.loss:.3g}: it has exploded"
        for name, norm in result.gradient_norms.items():
            if not math.isfinite(norm):
                return f"the norm of the {name}'s gradient is {norm}"
        return None
