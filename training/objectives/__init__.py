"""Training objectives by name. A new one is one file and one line here."""

from training.objectives.cross_entropy import CrossEntropy
from training.objectives.objective import Objective
from training.objectives.self_critical import SelfCritical
from training.objectives.weighted_fine_tuning import WeightedFineTuning

OBJECTIVES: dict[str, type[Objective]] = {
    "cross_entropy": CrossEntropy,
    "self_critical": SelfCritical,
    "weighted_fine_tuning": WeightedFineTuning,
}

__all__ = ["OBJECTIVES"]
