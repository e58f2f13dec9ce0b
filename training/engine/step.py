"""Loss and gradient of a batch, in shares: what all processes do together between two steps of the optimizer."""

import math
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from training.data.loading import split
from training.data.visual_batches import VisualBatch, VisualInputs
from training.engine.distributed import Engine
from training.errors import TrainingError
from training.objectives.objective import Objective, Outcome

LARGEST_GRADIENT = 5.0
"""Norm that a module's gradient is scaled down to."""


class Share(NamedTuple):
    """What one process computes at a time."""

    images: np.ndarray
    """(B,) integers, which images of the training split."""
    batch: VisualBatch
    part: float
    """Of the loss of the whole batch: what the share's mean counts for. 0 for a share that only keeps step."""


class Figures(NamedTuple):
    """Of a whole batch."""

    loss: float
    reward: float | None
    gradient_norms: dict[str, float]
    """By module, before they were scaled down."""


class _Forward(nn.Module):
    """From what is read to the loss, as one module whose parameters are those that learn."""

    def __init__(self, learning: Mapping[str, nn.Module], inputs: VisualInputs, objective: Objective) -> None:
        super().__init__()
        self.learning = nn.ModuleDict(learning)
        self._inputs, self._objective = inputs, objective

    def forward(self, batch: VisualBatch, images: np.ndarray) -> Outcome:
        captioner: Any = self.learning["captioner"]
        return self._objective(captioner, self._inputs.visual(batch), images)


class GradientStep:
    """Of one phase. The gradient equals that of one process that takes the batch whole, dropout aside."""

    def __init__(
        self, engine: Engine, learning: Mapping[str, nn.Module], inputs: VisualInputs, objective: Objective
    ) -> None:
        """
        Args:
            learning: the ``captioner`` and, if it learns, the ``backbone`` of ``inputs``.
        """
        self._engine, self._inputs, self._objective = engine, inputs, objective
        self._learning = learning
        self._forward = engine.set_up(_Forward(learning, inputs, objective))
        self._shares: list[Share] = []

    def read(self, images: np.ndarray, random: np.random.Generator, accumulate: int) -> list[Share]:
        """This process' shares of a batch; may be called in another thread.

        Args:
            images: (B,) of the whole batch.
            random: of this batch.
            accumulate: shares one after the other.

        Raises:
            DataError: an image cannot be read.
        """
        whole = self._objective.weight(images)
        shares = []
        for own in split(images, accumulate, self._engine.rank, self._engine.processes):
            part = self._objective.weight(own) / whole
            # One without a share computes something for nothing, as all must take part in adding up the gradients.
            own = own if len(own) else images[:1]
            shares.append(Share(own, self._inputs.training_batch(own, random), part))
        return shares

    def differentiate(self, read: Iterator[list[Share]]) -> Figures:
        """Add the gradient of the next batch to the parameters, scaled down where it is too large.

        Args:
            read: what :meth:`read` returned, batch after batch.

        Raises:
            TrainingError: loss or gradient is not finite, or the loss has exploded. Nothing has been learnt from it.
            DataError: an image cannot be read.
        """
        engine = self._engine
        with engine.together():
            self._shares = next(read)
        outcomes = []
        for left, share in zip(range(len(self._shares), 0, -1), self._shares, strict=True):
            with engine.without_sum(self._forward) if left > 1 else nullcontext():
                outcomes.append(self._outcome(share))
                engine.backward(outcomes[-1].loss * share.part)
        norms = [nn.utils.clip_grad_norm_(module.parameters(), LARGEST_GRADIENT) for module in self._learning.values()]
        return self._figures(outcomes, norms)

    def verify(self) -> None:
        """Compute the last batch's loss once more, with what was learnt from it.

        Raises:
            TrainingError: as above: the weights are not worth keeping.
        """
        with torch.no_grad():
            outcomes = [self._outcome(share) for share in self._shares]
        if outcomes:
            self._figures(outcomes, [])

    def _outcome(self, share: Share) -> Outcome:
        return self._forward(self._engine.to_device(share.batch), share.images)

    def _figures(self, outcomes: list[Outcome], norms: list[Tensor]) -> Figures:
        """Of all processes' shares, the same in each."""
        engine, parts = self._engine, [share.part for share in self._shares]
        loss = torch.stack([o.loss.detach() * part for o, part in zip(outcomes, parts, strict=True)]).sum()
        values = torch.stack([loss, *(norm / engine.processes for norm in norms)]).tolist()  # waits for the device once
        rewards = [o.reward * part for o, part in zip(outcomes, parts, strict=True) if o.reward is not None]
        total, reward, *lengths = engine.sum([values[0], sum(rewards), *values[1:]])
        figures = Figures(total, reward if rewards else None, dict(zip(self._learning, lengths, strict=False)))
        if problem := self._problem(figures):
            engine.fail(TrainingError(problem))
        return figures

    def _problem(self, figures: Figures) -> str | None:
        if not math.isfinite(figures.loss):
            return f"the loss is {figures.loss}"
        if abs(figures.loss) > self._objective.largest_loss:
            return f"the loss is {figures.loss:.3g}: it has exploded"
        for name, norm in figures.gradient_norms.items():
            if not math.isfinite(norm):
                return f"the norm of the {name}'s gradient is {norm}"
        return None
