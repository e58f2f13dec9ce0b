"""The families of single captioners by name. A new one is one file and one line here."""

from training.models.captioner import Captioner
from training.models.florence2 import Florence2
from training.models.m2 import M2
from training.models.object_relation import ObjectRelation
from training.models.pma_net import PmaNet
from training.models.published_decoders import Blip, Git, SmolVlm, VisionEncoderDecoder
from training.models.smart import Smart
from training.models.transformer import Transformer
from training.models.up_down import UpDown
from training.models.x_lan import XLan
from training.models.x_transformer import XTransformer

SINGLE_FAMILIES: dict[str, type[Captioner]] = {
    "smart": Smart,
    "up_down": UpDown,
    "transformer": Transformer,
    "object_relation": ObjectRelation,
    "m2": M2,
    "pma_net": PmaNet,
    "x_lan": XLan,
    "x_transformer": XTransformer,
    "git": Git,
    "blip": Blip,
    "florence2": Florence2,
    "vision_encoder_decoder": VisionEncoderDecoder,
    "smolvlm": SmolVlm,
}
