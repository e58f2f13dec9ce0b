"""Training objectives by name. A new one is one file and one line here."""

from collections.abc import Callable

from training.configs.schema import PhaseConfig
from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import Objective, TrainingCaptions
from training.objectives.self_critical import SelfCritical

OBJECTIVES: dict[str, Callable[[TrainingCaptions, PhaseConfig], Objective]] = {
    "cross_entropy": CrossEntropy,
    "self_critical": SelfCritical,
}

__all__ = ["OBJECTIVES"]
