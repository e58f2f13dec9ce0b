"""The model families and what they see with. A new one is one file and one line here."""

from training.models.smart import Smart
from training.vision.backbone import Backbone
from training.vision.side_by_side import GRIDS, SideBySide

FAMILIES = {"smart": Smart}
BACKBONES: dict[str, type[Backbone]] = {**GRIDS, SideBySide.kind: SideBySide}

__all__ = ["BACKBONES", "FAMILIES"]
