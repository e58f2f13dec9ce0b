"""Where a run stands, how much of it there is, and how long the rest will take."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.configs.schema import PhaseConfig


@dataclass
class Progress:
    """Where a run stands; JSON in the checkpoint."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    """Steps done in this epoch."""
    loss_sum: float = 0.0
    reward_sum: float | None = None
    """None where the objective has no reward."""
    best_cider: float = -1.0
    phase_cider: float = -1.0
    """Best of this phase."""
    stale_epochs: int = 0
    """Epochs of this phase since ``phase_cider``."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """An entry an epoch."""
    steps_done: int = 0
    """Of the whole run."""
    seconds: float = 0.0
    """Spent on this epoch."""


class Plan:
    """The steps of a run, if no phase ends early."""

    def __init__(self, phases: Sequence[PhaseConfig], images: Sequence[int]) -> None:
        """
        Args:
            images: of the training split, that each phase learns from.
        """
        self.phases = phases
        self.steps = [math.ceil(count / phase.images_per_batch) for phase, count in zip(phases, images, strict=True)]
        """An epoch, of each phase."""
        self.total = sum(self._steps_of(range(len(phases))))

    def _steps_of(self, phases: Iterable[int]) -> list[int]:
        return [self.phases[index].epochs * self.steps[index] for index in phases]

    def done(self, progress: Progress) -> int:
        """Steps that are done, or that a phase which ended early left out."""
        before = sum(self._steps_of(range(progress.phase)))
        if progress.phase == len(self.phases):
            return before
        return before + progress.epoch * self.steps[progress.phase] + progress.step

    def remaining_seconds(self, progress: Progress) -> float | None:
        """At the pace of the phase's last whole epoch, its dev split included, or else of what is done of this one.

        An image is taken to cost as much in the phases to come. None before the first step.
        """
        if progress.phase == len(self.phases):
            return 0.0
        phase, steps = self.phases[progress.phase], self.steps[progress.phase]
        seconds, measured = progress.seconds, progress.step
        if progress.epoch and "seconds" in progress.history[-1]:
            seconds, measured = progress.history[-1]["seconds"], steps
        if not measured:
            return None
        later = range(progress.phase + 1, len(self.phases))
        images = (phase.epochs - progress.epoch) * steps * phase.images_per_batch
        images -= progress.step * phase.images_per_batch
        for index, planned in zip(later, self._steps_of(later), strict=True):
            images += planned * self.phases[index].images_per_batch
        return seconds / (measured * phase.images_per_batch) * images
