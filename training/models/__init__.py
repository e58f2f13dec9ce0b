"""The families of captioners by name. A new one is one file and one line in ``families.py``."""

from training.models.captioner import Captioner
from training.models.ensemble import Ensemble
from training.models.families import SINGLE_FAMILIES

FAMILIES: dict[str, type[Captioner]] = {**SINGLE_FAMILIES, "ensemble": Ensemble}

__all__ = ["FAMILIES"]
