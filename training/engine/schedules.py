"""Learning rate schedules. A new one is one function and one line of the registry.

The formulas are ours, torch's LambdaLR applies them: of torch's own schedulers none has the warm-up in the same steps.
"""

import math
from collections.abc import Callable

import torch
from torch.optim.lr_scheduler import LambdaLR

from training.configs.schema import TrainingPhaseConfig

Schedule = Callable[[int, int, TrainingPhaseConfig], float]
"""Step (from 0), steps of the phase, the phase -> factor of the phase's peak learning rates."""


def constant(step: int, total: int, phase: TrainingPhaseConfig) -> float:
    """1, after a linear warm-up."""
    return min(1.0, (step + 1) / max(1, phase.warmup_steps))


def cosine(step: int, total: int, phase: TrainingPhaseConfig) -> float:
    """Linear warm-up to 1, then half a cosine to ``final_share``."""
    if step < phase.warmup_steps:
        return (step + 1) / phase.warmup_steps
    done = (step - phase.warmup_steps) / max(1, total - phase.warmup_steps)
    return phase.final_share + (1 - phase.final_share) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def noam(step: int, total: int, phase: TrainingPhaseConfig) -> float:
    """``d^-0.5 min(s^-0.5, s w^-1.5)`` for steps s from 1, w warm-up steps and width d (Vaswani et al., 2017).

    SMArT's Sec. IV-C prints ``s w^-0.5``, a slip: the two branches would not meet. With ``learning_rate: 1.0`` this
    is the paper's rate; it does not depend on the length of the phase.
    """
    s = step + 1
    return phase.schedule_width**-0.5 * min(s**-0.5, s * phase.warmup_steps**-1.5)


SCHEDULES: dict[str, Schedule] = {"constant": constant, "cosine": cosine, "noam": noam}


def make_scheduler(optimizer: torch.optim.Optimizer, phase: TrainingPhaseConfig, total: int, done: int) -> LambdaLR:
    """The schedule of a phase, at the step after those that are done.

    Args:
        optimizer: its groups have the peak learning rates as ``initial_lr``.
        total: steps of the phase's schedule.
        done: steps of the phase that are done.
    """
    schedule = SCHEDULES[phase.schedule]
    return LambdaLR(optimizer, lambda step: schedule(step, total, phase), last_epoch=done - 1)
