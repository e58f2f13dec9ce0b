"""The backbones by name; a new one is one line here."""

from training.vision.backbone import Backbone
from training.vision.grids import GRIDS
from training.vision.side_by_side import SideBySide

BACKBONES: dict[str, type[Backbone]] = {**GRIDS, SideBySide.kind: SideBySide}
