"""SMArT: a shallow, memory-aware Transformer (Cornia et al., ICRA 2020).

The encoder applies memory-augmented self-attention to the visual tokens; the decoder's cross-attention attends to the
encoder's last level. The closest published code is M2's encoder with a plain decoder; the parity cases
(``tests/training/models/test_smart.py``) compare this file with it.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.captioner import (
    PADDING_ID,
    BufferPolicy,
    Captioner,
    CaptionerConfig,
    PrefixTree,
    Step,
    Visual,
    join_sequences,
    split_sequences,
    visible_slots,
)
from training.models.layers import (
    DecoderLayer,
    Dropout,
    EncoderLayer,
    ImageCache,
    WordCache,
    converted_for_products,
    rows_from,
    sinusoidal_positions,
)


@dataclass(frozen=True)
class SmartConfig(CaptionerConfig):
    """Hyper-parameters; the defaults are those of the paper's Sec. IV-C.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    d_model: int = 512
    heads: int = 8
    d_ff: int = 2048
    encoder_layers: int = 2
    decoder_layers: int = 2
    memory_slots: int = 40
    """Memory slots of each encoder layer, Table II."""
    dropout: float = 0.1
    max_length: int = 54
    """Longest sequence of words, begin token included, that the position table covers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.memory_slots < 0:
            raise ValueError(f"memory_slots must not be negative, not {self.memory_slots}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), not {self.dropout}")
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")


class EncodedImage(NamedTuple):
    """Everything that decoding needs of B images."""

    caches: list[ImageCache]
    """One per decoder layer."""
    mask: Tensor | None
    """(B, 1, 1, N) bool, True where a token is real; None when all are."""


class Smart(Captioner):
    """The SMArT captioner. Its state is one :class:`WordCache` per decoder layer."""

    Config = SmartConfig
    buffer_policies: ClassVar = {"positions": BufferPolicy()}
    config: SmartConfig
    positions: Tensor
    """(max_length + 1, d) float32, the position table; a constant that checkpoints contain."""

    def __init__(self, config: SmartConfig) -> None:
        super().__init__(config)
        d, p = config.d_model, config.dropout
        self.token_projection = nn.Linear(config.token_width, d)
        self.token_dropout = Dropout(p)
        self.token_norm = nn.LayerNorm(d)
        self.encoder = nn.ModuleList(
            EncoderLayer(d, config.heads, config.d_ff, config.memory_slots, p) for _ in range(config.encoder_layers)
        )
        self.word_embedding = nn.Embedding(config.vocabulary_size, d, padding_idx=PADDING_ID)
        self.register_buffer("positions", sinusoidal_positions(config.max_length + 1, d))
        self.decoder = nn.ModuleList(
            DecoderLayer(d, config.heads, config.d_ff, p) for _ in range(config.decoder_layers)
        )
        self.word_projection = nn.Linear(d, config.vocabulary_size, bias=False)
        nn.init.normal_(self.word_embedding.weight, std=d**-0.5)
        nn.init.xavier_uniform_(self.word_projection.weight)

    @property
    def max_words(self) -> int:
        return self.config.max_length

    def decoder_layers(self) -> list[DecoderLayer]:
        """Return the decoder's layers, first to last."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def encode_levels(self, visual: Visual) -> list[Tensor]:
        """Compute every encoder level: encoder_layers x (B, N, d)."""
        x = self.token_norm(self.token_dropout(torch.relu(self.token_projection(visual.tokens))))
        levels = []
        for layer in self.encoder:
            x = layer(x, visual.mask)
            levels.append(x)
        return levels

    def encode(self, visual: Visual) -> EncodedImage:
        memory = converted_for_products(self.encode_levels(visual)[-1])
        return EncodedImage(
            [
                # Contiguous, because every step of the search multiplies them, and would copy them for it.
                ImageCache(*(x.contiguous() for x in layer.cross_attention.project_keys_values(memory)))
                for layer in self.decoder_layers()
            ],
            None if visual.mask is None else visual.mask[:, None, None, :],
        )

    def initial_state(self, encoded: EncodedImage, sequences: int) -> list[WordCache]:
        like = encoded.caches[0].keys
        return [layer.self_attention.empty_cache(like, like.shape[0]) for layer in self.decoder_layers()]

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: list[WordCache],
        encoded: EncodedImage,
        *,
        attention: bool = True,
    ) -> Step:
        """Decode the next words; the attention of the step is that of the last layer, averaged over heads."""
        _, group, length = words.shape
        positions = rows_from(self.positions[1:], position, length)
        x = self.word_embedding(join_sequences(words)) + (positions if length == 1 else positions.repeat(group, 1))
        visible = visible_slots(past, length)[:, None]
        x, weights, state = self._decode_words(x, visible, state, encoded, attention)
        averaged = None if weights is None else split_sequences(weights.mean(dim=1), length)
        return Step(split_sequences(self.word_projection(x), length), averaged, state)

    def decode_tree(self, tree: PrefixTree, encoded: EncodedImage) -> Tensor:
        x = self.word_embedding(tree.words) + functional.embedding(tree.positions, self.positions[1:])
        x, _, _ = self._decode_words(x, tree.visible[:, None], self.initial_state(encoded, 1), encoded, False)
        logits: Tensor = self.word_projection(x)
        return logits

    def _decode_words(
        self, x: Tensor, visible: Tensor, state: list[WordCache], encoded: EncodedImage, attention: bool
    ) -> tuple[Tensor, Tensor | None, list[WordCache]]:
        """Apply the decoder's layers to Q embedded words of each image.

        Args:
            x: (B, Q, d).
            visible: (B, 1, Q, S + Q) bool, True where a word sees one of the S words of the state or of these words.
            state: S slots.
            encoded: the images.
            attention: whether to return attention weights.

        Returns:
            (B, Q, d); the attention weights of the last layer, (B, H, Q, N), or None; the state with S + Q slots.
        """
        caches, weights = [], None
        last = len(self.decoder) - 1
        for index, layer in enumerate(self.decoder_layers()):
            attended, cache = layer.self_attention.attend_words(x, state[index], visible)
            x = layer.self_norm(x, attended)
            x, weights = layer.attend_image(x, encoded.caches[index], encoded.mask, weights=attention and index == last)
            caches.append(cache)
        return x, weights, caches
