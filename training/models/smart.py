"""SMArT: a shallow, memory-aware Transformer (Cornia et al., ICRA 2020).

The encoder applies memory-augmented self-attention to the visual tokens; the decoder's cross-attention attends to the
encoder's last level. The closest published code is M2's encoder with a plain decoder; the parity cases
(``tests/training/models/test_smart.py``) compare this file with it.
"""

from dataclasses import dataclass

from training.models.transformer import Transformer, TransformerConfig


@dataclass(frozen=True)
class SmartConfig(TransformerConfig):
    """Hyper-parameters; the defaults are those of the paper's Sec. IV-C.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    encoder_layers: int = 2
    decoder_layers: int = 2
    memory_slots: int = 40
    """Memory slots of each encoder layer, Table II."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory_slots < 0:
            raise ValueError(f"memory_slots must not be negative, not {self.memory_slots}")


class Smart(Transformer):
    """The SMArT captioner."""

    Config = SmartConfig
    config: SmartConfig

    def _memory_slots(self) -> int:
        return self.config.memory_slots
