"""Hyper-parameters that the Transformer families and their layers share."""

from dataclasses import dataclass

from training.configs.checks import check_at_least_1, check_shares
from training.models.captioner import CaptionerConfig


@dataclass(frozen=True)
class TransformerConfig(CaptionerConfig):
    """Hyper-parameters of every Transformer family; the defaults are the sizes of M2's baseline."""

    d_model: int = 512
    heads: int = 8
    d_ff: int = 2048
    encoder_layers: int = 3
    decoder_layers: int = 3
    dropout: float = 0.1
    attention_on_attention: bool = False
    """Whether attention on attention takes the place of the output projection of every attention (M2, Table 1)."""
    output_bias: bool = False
    """Whether the projection to the words has a bias, which the papers' has not; that of smart-home-6 lowers the end
    token."""
    max_length: int = 54
    """Longest sequence of words, begin token included, that the position table covers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_1(self, "d_model", "heads", "d_ff", "encoder_layers", "decoder_layers", "max_length")
        check_shares(self, "dropout")
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
