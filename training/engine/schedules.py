"""Learning rate schedules. A new one is one function and one line of the registry.

torch's LambdaLR applies these formulas, because no scheduler of torch has the same warm-up.
"""

import math
from collections.abc import Callable

import torch
from torch.optim.lr_scheduler import LambdaLR

from training.configs.schema import PhaseConfig

Schedule = Callable[[int, int, PhaseConfig], float]
"""Step (from 0), number of steps of the phase, the phase -> factor of the phase's peak learning rates."""


def constant(step: int, total: int, phase: PhaseConfig) -> float:
    """Linear warm-up to 1, then constant."""
    return min(1.0, (step + 1) / max(1, phase.warmup_steps))


def cosine(step: int, total: int, phase: PhaseConfig) -> float:
    """Linear warm-up to 1, then half a cosine to ``final_share``."""
    if step < phase.warmup_steps:
        return (step + 1) / phase.warmup_steps
    done = (step - phase.warmup_steps) / max(1, total - phase.warmup_steps)
    return phase.final_share + (1 - phase.final_share) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def linear(step: int, total: int, phase: PhaseConfig) -> float:
    """A straight line from 1 to ``final_share``."""
    return 1 - (1 - phase.final_share) * step / total


def exponential(step: int, total: int, phase: PhaseConfig) -> float:
    """From 1 to ``final_share`` by the same factor at every step."""
    return float(phase.final_share ** (step / total))


def noam(step: int, total: int, phase: PhaseConfig) -> float:
    """``d^-0.5 min(s^-0.5, s w^-1.5)`` for steps s from 1, w warm-up steps and width d (Vaswani et al., 2017).

    SMArT's Sec. IV-C has ``s w^-0.5``, a misprint: the two branches would not meet. With ``learning_rate: 1.0`` this
    is the paper's rate; it does not depend on the length of the phase.
    """
    s = step + 1
    return phase.schedule_width**-0.5 * min(s**-0.5, s * phase.warmup_steps**-1.5)


def hold(step: int, total: int, phase: PhaseConfig) -> float:
    """Linear warm-up to 1, 1 until ``hold_steps``, a fall to ``final_share`` until ``decay_steps``, then constant.

    PMA-Net's Sec. 4.2 calls the fall sub-linear; here its progress is the square root of time.
    """
    if step < phase.hold_steps:
        return constant(step, total, phase)
    done = min(1.0, (step - phase.hold_steps) / (phase.decay_steps - phase.hold_steps))
    return 1 - (1 - phase.final_share) * math.sqrt(done)


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "exponential": exponential,
    "hold": hold,
    "linear": linear,
    "noam": noam,
}


def make_scheduler(optimizer: torch.optim.Optimizer, phase: PhaseConfig, total: int, done: int) -> LambdaLR:
    """Build the scheduler of a phase of ``total`` steps, positioned after those that are ``done``.
    ``optimizer``: its groups have the peak learning rates as ``initial_lr``.
    """
    schedule = SCHEDULES[phase.schedule]
    return LambdaLR(optimizer, lambda step: schedule(step, total, phase), last_epoch=done - 1)
