"""Loss and gradient of a batch in this process; the gradient is summed over all processes."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from training.configs.schema import PhaseConfig
from training.data.loading import divide_batch
from training.engine.distributed import Processes
from training.engine.optimizers import clip_gradient
from training.engine.results import UnreadResult
from training.engine.task import CaptionTask
from training.objectives.objective import BatchLoss


class MicroBatch(NamedTuple):
    """The part of a batch that one process computes in one pass."""

    images: np.ndarray
    """(B,) integers, indices in the training split."""
    inputs: Any
    """Inputs of the loss."""
    weight: float
    """Weight of this part's mean loss in the mean of the batch; 0 for a process without images in this step."""


class _Forward(nn.Module):
    """Computes the loss as one module with all parameters that learn, as summing gradients over processes needs."""

    def __init__(self, processes: Processes, task: CaptionTask, modules: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.modules_to_train = nn.ModuleDict(modules)
        self._processes, self._task = processes, task

    def forward(self, inputs: Any, images: np.ndarray) -> BatchLoss:
        with self._processes.autocast():
            return self._task.loss(inputs, images)


class GradientStep:
    """Computes the gradients of one phase; they equal those of one process with the whole batch, except for dropout."""

    def __init__(
        self, processes: Processes, task: CaptionTask, modules: Mapping[str, nn.Module], phase: PhaseConfig
    ) -> None:
        """``modules``: those that learn in this phase, by name."""
        self._processes, self._task, self._phase = processes, task, phase
        self._parameters = {name: list(module.parameters()) for name, module in modules.items()}
        self._forward = processes.wrap(_Forward(processes, task, modules))
        self.scaler = processes.new_scaler()
        """Scales the loss, and updates the weights unless a gradient has overflowed."""
        self._parts: list[MicroBatch] = []

    def read(self, images: np.ndarray) -> list[MicroBatch]:
        """Read the parts of a batch that this process computes; may be called in another thread.
        ``images``: (B,) indices of the whole batch.

        Raises:
            DataError: an image cannot be read.
        """
        weights = self._task.objective.weights(images)
        rank, count = self._processes.rank, self._processes.count
        parts = []
        for own in divide_batch(images, self._task.objective.costs(images), self._phase.accumulate, rank, count):
            weight = float(self._task.objective.weights(own).sum() / weights.sum())
            # Every process must take part in summing the gradients: one without images computes a loss of weight 0.
            own = own if len(own) else images[:1]
            parts.append(MicroBatch(own, self._processes.pin(self._task.read(own)), weight))
        return parts

    def differentiate(self, parts: list[MicroBatch], optimizer: torch.optim.Optimizer) -> UnreadResult:
        """Set the gradients of the parameters to the clipped gradient of a batch, without waiting for a GPU.
        ``parts``: result of :meth:`read`.
        """
        processes, self._parts = self._processes, parts
        for parameters in self._parameters.values():
            for parameter in parameters:
                parameter.grad = None
        losses = []
        for left, part in zip(range(len(parts), 0, -1), parts, strict=True):
            with processes.without_gradient_sum(self._forward) if left > 1 else nullcontext():
                losses.append(self._loss(part))
                processes.backward(self.scaler.scale(losses[-1].loss * part.weight))
        self.scaler.unscale_(optimizer)
        norms = {name: clip_gradient(own, self._phase.clipping) for name, own in self._parameters.items()}
        return self._result(losses, norms)

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the weights by the gradients of :meth:`differentiate`; in fp16 not by gradients that overflowed."""
        self.scaler.step(optimizer)
        self.scaler.update()

    def verify(self) -> UnreadResult:
        """Compute the loss of the last batch again, with the weights after the step."""
        with torch.no_grad():
            return self._result([self._loss(part) for part in self._parts], {})

    def _loss(self, part: MicroBatch) -> BatchLoss:
        loss: BatchLoss = self._forward(self._processes.to_device(part.inputs), part.images)
        return loss

    def _result(self, losses: list[BatchLoss], norms: dict[str, Tensor]) -> UnreadResult:
        """Combine the parts of the batch that this process has computed."""
        weighted = [(part, own.weight) for part, own in zip(losses, self._parts, strict=True)]
        loss = torch.stack([part.loss.detach() * weight for part, weight in weighted]).sum()
        rewards = [part.reward * weight for part, weight in weighted if part.reward is not None]
        return UnreadResult(loss, sum(rewards) if rewards else None, norms)
