"""M2: Meshed-Memory Transformer (Cornia et al., CVPR 2020).

A memory-augmented encoder (Eq. 1-5), the same as SMArT's, and a decoder whose layers attend to every encoder level and
weigh the results by learned gates (Eq. 6-9). The parity cases (``tests/training/models/test_m2.py``) compare this file
with the published code, whose order of normalisations it has: the cross-attention has its residual connection and
LayerNorm before the gates, and the gated sum has neither.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training.models.attention import ImageCache
from training.models.layers import DecoderLayer
from training.models.smart import Smart, SmartConfig

CONNECTIONS = ("meshed", "one_to_one")
GATES = ("sigmoid", "softmax")


@dataclass(frozen=True)
class M2Config(SmartConfig):
    """Hyper-parameters; the defaults are those of the paper's Sec. 4.2, the choices those of its Table 1.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    encoder_layers: int = 3
    decoder_layers: int = 3
    connections: str = "meshed"
    """``meshed``: every decoder layer attends to all encoder levels; ``one_to_one``: to the level of its own number,
    without gates."""
    gates: str = "sigmoid"
    """``sigmoid`` (Eq. 8) or ``softmax``: over the levels, for every channel."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("connections", CONNECTIONS), ("gates", GATES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")
        if self.connections == "one_to_one" and self.encoder_layers != self.decoder_layers:
            raise ValueError(
                f"decoder_layers must equal encoder_layers ({self.encoder_layers}) with one_to_one connections, "
                f"not {self.decoder_layers}"
            )


class MeshedDecoderLayer(DecoderLayer):
    """A decoder layer that attends to all L encoder levels with one cross-attention and a gate for each level."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float,
        *,
        levels: int,
        gates: str,
        attention_on_attention: bool = False,
    ) -> None:
        """
        Args:
            d_model, heads, d_ff, dropout, attention_on_attention: as for :class:`DecoderLayer`.
            levels: L, number of encoder levels.
            gates: one of :data:`GATES`.
        """
        super().__init__(d_model, heads, d_ff, dropout, attention_on_attention=attention_on_attention)
        self._softmax = gates == "softmax"
        self.gates = nn.ModuleList(nn.Linear(2 * d_model, d_model) for _ in range(levels))
        for gate in self.gates:
            assert isinstance(gate, nn.Linear)
            nn.init.xavier_uniform_(gate.weight)
            nn.init.zeros_(gate.bias)

    def project_image(self, levels: Sequence[Tensor]) -> ImageCache:
        """Project the encoder levels, each (B, N, d), to keys and values (B, L, H, N, d_h)."""
        keys, values = self.cross_attention.project_keys_values(torch.stack([*levels], dim=1))
        return ImageCache(keys.contiguous(), values.contiguous())

    def attend_image(
        self, x: Tensor, image: ImageCache, mask: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Apply meshed cross-attention (Eq. 6-8) and feed-forward.

        Args:
            x: (B, Q, d).
            image: keys and values of all levels.
            mask: (B, 1, 1, N) bool, True where a token is real; None when all are.
            weights: whether to return the attention weights.

        Returns:
            (B, Q, d) and, if asked for, the attention weights (B, H, Q, N), averaged over the levels.
        """
        query = x[:, None]
        attended, attention = self.cross_attention.attend_maybe_with_weights(
            query, image.keys, image.values, None if mask is None else mask[:, None], weights=weights
        )
        attended = self.cross_norm(query, attended)  # (B, L, Q, d), Eq. 7
        levels = attended.unbind(dim=1)
        # Eq. 8
        scores = torch.stack(
            [gate(torch.cat([x, level], dim=-1)) for gate, level in zip(self.gates, levels, strict=True)], dim=1
        )
        alpha = scores.softmax(dim=1) if self._softmax else torch.sigmoid(scores)
        x = (alpha * attended).sum(dim=1) / math.sqrt(len(levels))  # Eq. 6
        return self.feed_forward_norm(x, self.feed_forward(x)), None if attention is None else attention.mean(dim=1)


class M2(Smart):
    """The M2 captioner."""

    Config = M2Config
    config: M2Config

    def _new_decoder_layer(self, index: int) -> DecoderLayer:
        config = self.config
        sizes = (config.d_model, config.heads, config.d_ff, config.dropout)
        if config.connections == "one_to_one":
            return DecoderLayer(*sizes, level=index, attention_on_attention=config.attention_on_attention)
        return MeshedDecoderLayer(
            *sizes,
            levels=config.encoder_layers,
            gates=config.gates,
            attention_on_attention=config.attention_on_attention,
        )
