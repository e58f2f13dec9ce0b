"""Progress of a run: its position and its number of steps."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.configs.schema import PhaseConfig, Precision
from training.engine.dev_evaluation import DevScores

SELECTION = "cider"
"""Dev score by which the best epoch is selected."""


@dataclass
class Progress:
    """Position and statistics of a run; JSON in the checkpoint."""

    phase: int = 0
    """Index of the current phase; the number of phases when the run is finished."""
    epoch: int = 0
    """Number of finished epochs of the phase."""
    step: int = 0
    """Number of finished steps of the epoch."""
    loss_sum: float = 0.0
    """Sum of the losses of these steps; between readings of the losses, that of the steps that were read."""
    reward_sum: float | None = None
    """Sum of their rewards; None if the objective has no reward."""
    learning_rates: dict[str, float] = field(default_factory=dict)
    """Learning rates of the last step, by module."""
    best_score: float = -1.0
    """Score of the best epoch of the run; that of a subset only until an epoch is scored on the whole dev split."""
    best_is_of_subset: bool = False
    """Whether ``best_score`` is that of a subset."""
    phase_score: float = -1.0
    """Best score of this phase; in a run with a subset, that of the subset."""
    stale_epochs: int = 0
    """Number of epochs since the one with ``phase_score``."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """Log entries of all epochs."""
    steps_done: int = 0
    """Number of finished steps of the whole run."""
    seconds: float = 0.0
    """Time spent on this epoch."""
    precision: Precision | None = None
    """``fp32``, ``bf16`` or ``fp16``; None for a new run."""
    scaler: dict[str, float] = field(default_factory=dict)
    """State of the scaler of gradients; empty but in fp16."""

    def begin_phase(self, phase: int) -> None:
        """Move to the beginning of a phase."""
        self.phase, self.epoch, self.scaler = phase, 0, {}
        self.phase_score, self.stale_epochs = -1.0, 0

    def epoch_entry(self, phase: str, scores: DevScores) -> dict[str, Any]:
        """Build the log entry of the epoch that has just been trained.

        ``dev_subset`` is the number of images that were scored; an entry without it has scores of the whole split.
        """
        entry: dict[str, Any] = {
            "phase": phase, "epoch": self.epoch + 1, "loss": round(self.loss_sum / self.step, 4),
            "learning_rate": next(iter(self.learning_rates.values())),
            **{name: round(value, 4) for name, value in scores.reported.items()},
        }  # fmt: skip
        if scores.whole is None:
            entry["dev_subset"] = scores.subset_images
        if self.reward_sum is not None:
            entry["reward"] = round(self.reward_sum / self.step, 4)
        entry["seconds"] = round(self.seconds, 1)
        return entry

    def stale_epochs_after(self, scores: DevScores) -> int:
        """Count the epochs since the best one of the phase, if the present epoch has these scores."""
        return 0 if scores.of_every_epoch[SELECTION] > self.phase_score else self.stale_epochs + 1

    def end_epoch(self, scores: DevScores) -> bool:
        """Move to the next epoch, after the present one got these scores.

        Returns:
            Whether the epoch is the best of the run: by the scores of the whole dev split, or by those of the subset
            as long as there are no others.
        """
        self.epoch, self.step = self.epoch + 1, 0
        self.loss_sum, self.reward_sum, self.seconds = 0.0, None, 0.0
        self.stale_epochs = self.stale_epochs_after(scores)
        self.phase_score = max(self.phase_score, scores.of_every_epoch[SELECTION])
        of_subset, score = scores.whole is None, scores.reported[SELECTION]
        if self.best_score < 0 or (self.best_is_of_subset and not of_subset):
            better = True
        else:
            better = of_subset == self.best_is_of_subset and score > self.best_score
        if better:
            self.best_score, self.best_is_of_subset = score, of_subset
        return better


class Plan:
    """Number of steps of a run, if no phase ends before its last epoch."""

    def __init__(self, phases: Sequence[PhaseConfig], images: int, captions: int = 0) -> None:
        """``captions``: number of their captions; needed where a phase has ``pairs``."""
        self.phases = phases
        self.steps = [math.ceil((captions if phase.pairs else images) / phase.images_per_batch) for phase in phases]
        """Number of steps in an epoch of each phase."""
        self.total = sum(self._planned(range(len(phases))))

    def _planned(self, phases: range) -> Iterator[int]:
        """Return the number of steps that are trained in each phase."""
        return (self.steps[index] * self.phases[index].last_epoch for index in phases)

    def steps_of_phase(self, progress: Progress) -> tuple[int, int]:
        """Return the numbers of finished steps of the current phase and of steps of its schedule."""
        steps = self.steps[progress.phase]
        return progress.epoch * steps + progress.step, self.phases[progress.phase].epochs * steps

    def done(self, progress: Progress) -> int:
        """Return the number of steps that are finished, or were skipped by a phase that ended early."""
        before = sum(self._planned(range(progress.phase)))
        if progress.phase == len(self.phases):
            return before
        return before + self.steps_of_phase(progress)[0]
