"""SMArT: a shallow, memory-aware Transformer (Cornia et al., ICRA 2020).

The encoder takes visual tokens through memory-augmented self-attention; the decoder's cross-attention sees the
encoder's last level. The closest published code is M2's encoder with a plain decoder, and the parity cases
(`tests/training/models/test_smart.py`) hold this file to it.

A model of any family offers three calls, and nothing else is asked of it by training, decoding or export:
``forward`` (teacher forcing), ``encode`` (once an image) and ``step`` (once a word, for all beams).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.layers import DecoderLayer, EncoderLayer, sinusoidal_positions


@dataclass(frozen=True)
class SmartConfig:
    """Hyper-parameters, by default those of the paper's Sec. IV-C.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    vocabulary_size: int
    token_width: int
    """Width of a visual token as it comes from the backbone or detector."""
    d_model: int = 512
    heads: int = 8
    d_ff: int = 2048
    encoder_layers: int = 2
    decoder_layers: int = 2
    memory_slots: int = 40
    """Memory slots a head, Table II."""
    dropout: float = 0.1
    max_length: int = 54
    """Longest sequence of words, begin token included, that the position table covers."""
    padding_id: int = 0

    def __post_init__(self) -> None:
        for name in (
            "vocabulary_size",
            "token_width",
            "d_model",
            "heads",
            "d_ff",
            "encoder_layers",
            "decoder_layers",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.memory_slots < 0:
            raise ValueError(f"memory_slots must not be negative, not {self.memory_slots}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), not {self.dropout}")
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")


class Encoded(NamedTuple):
    """What decoding needs of an image: cross-attention keys and values of every decoder layer, and the mask."""

    keys: list[Tensor]
    """decoder_layers x (B, H, N, d_h)"""
    values: list[Tensor]
    """decoder_layers x (B, H, N, d_h)"""
    mask: Tensor | None
    """(B, 1, 1, N) bool, True where a token is real; None when all are."""


class DecoderState(NamedTuple):
    """Append-only cache of the decoder's self-attention: S slots, one for every word of every beam so far."""

    keys: list[Tensor]
    """decoder_layers x (B, H, S, d_h)"""
    values: list[Tensor]
    """decoder_layers x (B, H, S, d_h)"""


class Smart(nn.Module):
    """The captioner: visual tokens and words in, word logits out."""

    Config = SmartConfig
    positions: Tensor

    def __init__(self, config: SmartConfig) -> None:
        super().__init__()
        self.config = config
        d, p = config.d_model, config.dropout
        self.token_projection = nn.Linear(config.token_width, d)
        self.token_dropout = nn.Dropout(p)
        self.token_norm = nn.LayerNorm(d)
        self.encoder = nn.ModuleList(
            EncoderLayer(d, config.heads, config.d_ff, config.memory_slots, p) for _ in range(config.encoder_layers)
        )
        self.word_embedding = nn.Embedding(config.vocabulary_size, d, padding_idx=config.padding_id)
        self.register_buffer("positions", sinusoidal_positions(config.max_length + 1, d))
        self.decoder = nn.ModuleList(
            DecoderLayer(d, config.heads, config.d_ff, p) for _ in range(config.decoder_layers)
        )
        self.word_projection = nn.Linear(d, config.vocabulary_size, bias=False)
        nn.init.normal_(self.word_embedding.weight, std=d**-0.5)
        nn.init.xavier_uniform_(self.word_projection.weight)

    def decoder_layers(self) -> list[DecoderLayer]:
        """The decoder's layers, first to last."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def encode_tokens(self, tokens: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        """Every encoder level.

        Args:
            tokens: (B, N, token_width) float.
            mask: (B, N) bool, True where a token is real; None when all are.

        Returns:
            encoder_layers x (B, N, d).
        """
        x = self.token_norm(self.token_dropout(torch.relu(self.token_projection(tokens))))
        levels = []
        for layer in self.encoder:
            x = layer(x, mask)
            levels.append(x)
        return levels

    def encode(self, tokens: Tensor, mask: Tensor | None = None) -> Encoded:
        """All that can be computed once an image: see :class:`Encoded`. Arguments as :meth:`encode_tokens`."""
        memory = self.encode_tokens(tokens, mask)[-1]
        projected = [layer.cross_attention.project_keys_values(memory) for layer in self.decoder_layers()]
        return Encoded(
            keys=[keys for keys, _ in projected],
            values=[values for _, values in projected],
            mask=None if mask is None else mask[:, None, None, :],
        )

    def forward(self, tokens: Tensor, words: Tensor, mask: Tensor | None = None) -> Tensor:
        """Teacher forcing.

        Args:
            tokens: (B, N, token_width) float.
            words: (B, G, T) int64, every caption's begin token and words, padded with ``padding_id``. An image
                is encoded once for its G captions.
            mask: (B, N) bool, True where a token is real.

        Returns:
            (B, G, T, vocabulary) logits; position t predicts word t + 1.
        """
        batch, group, length = words.shape
        encoded = self.encode(tokens, mask)
        real = words.flatten(0, 1) != self.config.padding_id
        causal = torch.ones(length, length, dtype=torch.bool, device=words.device).tril()
        # A padded query still sees itself and its past, so no row of the mask is empty.
        x = self.word_embedding(words.flatten(0, 1)) + self.positions[1 : length + 1] * real[..., None]
        for layer, keys, values in zip(self.decoder_layers(), encoded.keys, encoded.values, strict=True):
            own_keys, own_values = layer.self_attention.project_keys_values(x)
            attended, _ = layer.self_attention.attend(x, own_keys, own_values, causal)
            x = layer.self_norm(x, attended)
            x = x.unflatten(0, (batch, group)).flatten(1, 2)  # (B, G*T, d)
            x, _ = layer.attend_image(x, keys, values, encoded.mask)
            x = x.unflatten(1, (group, length)).flatten(0, 1)  # (B*G, T, d)
        return self.word_projection(x).unflatten(0, (batch, group))

    def initial_state(self, encoded: Encoded) -> DecoderState:
        """An empty cache for the images of ``encoded``."""
        empty = [keys[:, :, :0] for keys in encoded.keys]
        return DecoderState(keys=list(empty), values=list(empty))

    def step(
        self, words: Tensor, position: Tensor, ancestry: Tensor, state: DecoderState, encoded: Encoded
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """One word for each of G beams.

        Args:
            words: (B, G) int64, the last word of each beam.
            position: () int64, how many words precede it: 0 for the begin token.
            ancestry: (B, G, S + G) bool, which cache slots each beam may attend: its own past, and of the G
                slots that this call appends, its own. Keys and values are so never re-ordered.
            state: the cache with S slots.
            encoded: from :meth:`encode`.

        Returns:
            Logits (B, G, vocabulary), the last layer's cross-attention averaged over heads (B, G, N), and the
            cache with S + G slots.
        """
        x = self.word_embedding(words) + functional.embedding(position, self.positions[1:])
        visible = ancestry[:, None]
        all_keys, all_values = [], []
        for index, layer in enumerate(self.decoder_layers()):
            own_keys, own_values = layer.self_attention.project_keys_values(x)
            keys = torch.cat([state.keys[index], own_keys], dim=2)
            values = torch.cat([state.values[index], own_values], dim=2)
            attended, _ = layer.self_attention.attend(x, keys, values, visible)
            x = layer.self_norm(x, attended)
            x, weights = layer.attend_image(x, encoded.keys[index], encoded.values[index], encoded.mask)
            all_keys.append(keys)
            all_values.append(values)
        return self.word_projection(x), weights.mean(dim=1), DecoderState(all_keys, all_values)
