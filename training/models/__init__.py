"""The families of captioners and backbones by name. A new one is one file and one line in ``families.py``."""

from training.models.captioner import Captioner
from training.models.ensemble import Ensemble
from training.models.families import SINGLE_FAMILIES
from training.vision.backbone import Backbone
from training.vision.side_by_side import GRIDS, SideBySide

FAMILIES: dict[str, type[Captioner]] = {**SINGLE_FAMILIES, "ensemble": Ensemble}
BACKBONES: dict[str, type[Backbone]] = {**GRIDS, SideBySide.kind: SideBySide}

__all__ = ["BACKBONES", "FAMILIES"]
