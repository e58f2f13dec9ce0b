"""A plain Transformer captioner, and what the Transformer families share (Vaswani et al., 2017).

The encoder applies self-attention to the visual tokens; the decoder's layers attend to the words before and to the
encoder's last level. It is the baseline of the M2 and SMArT papers (Table 1; Fig. 3). SMArT, M2 and the Object Relation
Transformer are subclasses that replace layers.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.attention import KeysValues, TransformerConfig, WordCache, converted_for_products, draw_matrices
from training.models.captioner import PADDING_ID, BufferPolicy, ParallelCaptioner, State, Visual
from training.models.layers import DecoderLayer, Dropout, EncoderLayer, sinusoidal_positions


class EncodedImage(NamedTuple):
    """Everything that decoding needs of B images."""

    caches: list[KeysValues]
    """One per decoder layer."""
    mask: Tensor | None
    """(B, 1, 1, N) bool, True where a token is real; None when all are."""


class Transformer(ParallelCaptioner):
    """The plain Transformer captioner. Its state is one :class:`WordCache` per decoder layer."""

    Config = TransformerConfig
    buffer_policies: ClassVar = {"positions": BufferPolicy()}
    config: TransformerConfig
    positions: Tensor
    """(max_length + 1, d) float32, the position table; a constant that checkpoints contain. Row 1 is that of the begin
    token; row 0, which is not read, that of padding in M2's published code."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.token_projection = nn.Linear(config.token_width, d)
        self.token_dropout = Dropout(config.dropout)
        self.token_norm: nn.Module = nn.LayerNorm(d)
        self.encoder = nn.ModuleList(self._new_encoder_layer() for _ in range(config.encoder_layers))
        self.word_embedding = nn.Embedding(config.vocabulary_size, d, padding_idx=PADDING_ID)
        # The papers' sinusoids. In M2's published code its Xavier pass over all parameters replaces them.
        self.register_buffer("positions", sinusoidal_positions(config.max_length + 1, d))
        self.decoder = nn.ModuleList(self._new_decoder_layer(index) for index in range(config.decoder_layers))
        self.word_projection = nn.Linear(d, config.vocabulary_size, bias=config.output_bias)
        draw_matrices(self)

    def _new_encoder_layer(self) -> nn.Module:
        return EncoderLayer(self.config)

    def _new_decoder_layer(self, index: int) -> DecoderLayer:
        """Make the decoder layer at ``index``."""
        return DecoderLayer(self.config)

    @property
    def max_words(self) -> int:
        return self.config.max_length

    def decoder_layers(self) -> list[DecoderLayer]:
        """Return the decoder's layers, first to last."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def project_tokens(self, visual: Visual) -> Tensor:
        """Compute the encoder's input, (B, N, d)."""
        projected: Tensor = self.token_norm(self.token_dropout(torch.relu(self.token_projection(visual.tokens))))
        return projected

    def encode_levels(self, visual: Visual) -> list[Tensor]:
        """Compute every encoder level: encoder_layers x (B, N, d)."""
        x = self.project_tokens(visual)
        levels = []
        for layer in self.encoder:
            x = layer(x, visual.mask)
            levels.append(x)
        return levels

    def encode(self, visual: Visual) -> EncodedImage:
        levels = [converted_for_products(level) for level in self.encode_levels(visual)]
        return EncodedImage(
            [layer.project_image(levels) for layer in self.decoder_layers()],
            None if visual.mask is None else visual.mask[:, None, None, :],
        )

    def initial_state(self, encoded: EncodedImage, sequences: int) -> State:
        return [WordCache.empty(encoded.caches[0].keys, self.config.heads) for _ in self.decoder]

    def embed_words(self, words: Tensor, positions: Tensor) -> Tensor:
        """Compute the decoder's input (B, Q, d) from word ids (B, Q) and rows of the position table, (..., Q, d)."""
        embedded: Tensor = self.word_embedding(words)
        return embedded + positions

    def project_words(self, x: Tensor) -> Tensor:
        """Compute the logits (B, Q, V) from the decoder's output (B, Q, d)."""
        logits: Tensor = self.word_projection(x)
        return logits

    def decode_words(
        self, words: Tensor, positions: Tensor, visible: Tensor, state: State, encoded: EncodedImage, *, attention: bool
    ) -> tuple[Tensor, Tensor | None, State]:
        """Decode words; the attention is that of the last layer, averaged over heads."""
        x = self.embed_words(words, functional.embedding(positions, self.positions[1:]))
        visible, caches, weights = visible[:, None], [], None
        last = len(self.decoder) - 1
        for index, layer in enumerate(self.decoder_layers()):
            x, weights, cache = layer(
                x, state[index], visible, encoded.caches[index], encoded.mask, weights=attention and index == last
            )
            caches.append(cache)
        return self.project_words(x), None if weights is None else weights.mean(dim=1), caches
