"""The model families and what they see with. A new one is one file and one line here."""

from training.models.backbone import Backbone
from training.models.mobilenet_v2 import MobileNetV2
from training.models.mobilenet_yolox import MobileNetYolox
from training.models.smart import Smart

FAMILIES = {"smart": Smart}
BACKBONES: dict[str, type[Backbone]] = {backbone.kind: backbone for backbone in (MobileNetV2, MobileNetYolox)}

__all__ = ["BACKBONES", "FAMILIES"]
