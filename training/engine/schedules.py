"""How the learning rate goes over a phase. A new schedule is one function and one line of the registry."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.configs.schema import PhaseConfig

Schedule = Callable[[int, int, "PhaseConfig", int], float]
"""Step (from 0), steps of the phase, the phase, width of the model -> what the phase's rates are multiplied by."""


def constant(step: int, total: int, phase: "PhaseConfig", d_model: int) -> float:
    """1, after a linear warm-up."""
    return min(1.0, (step + 1) / max(1, phase.warmup_steps))


def cosine(step: int, total: int, phase: "PhaseConfig", d_model: int) -> float:
    """Linear warm-up to 1, then half a cosine to ``final_share``."""
    if step < phase.warmup_steps:
        return (step + 1) / phase.warmup_steps
    done = (step - phase.warmup_steps) / max(1, total - phase.warmup_steps)
    return phase.final_share + (1 - phase.final_share) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def noam(step: int, total: int, phase: "PhaseConfig", d_model: int) -> float:
    """``d^-0.5 min(s^-0.5, s w^-1.5)`` for steps s from 1 and w warm-up steps (Vaswani et al., 2017).

    SMArT's Sec. IV-C prints ``s w^-0.5``, a slip: the two branches would not meet. With ``learning_rate: 1.0`` this
    is the paper's rate; it ignores the length of the phase.
    """
    s = step + 1
    return d_model**-0.5 * min(s**-0.5, s * phase.warmup_steps**-1.5)


SCHEDULES: dict[str, Schedule] = {"constant": constant, "cosine": cosine, "noam": noam}
