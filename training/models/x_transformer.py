"""X-Transformer: a Transformer whose attention is the X-Linear attention block (Pan et al., CVPR 2020, Sec. 4.2).

The paper describes it in one sentence; this file follows the published code, and the parity cases
(``tests/training/models/test_x_linear_families.py``) compare the two. The decoder has two streams: the words, and for
each word a global vector that attends first to the words before it and then to the regions, and predicts the next word.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import PositiveInt, Share
from training.models.attention import KeysValues, WordCache
from training.models.captioner import PADDING_ID, BufferPolicy, ParallelCaptioner, Slots, Visual
from training.models.layers import AddNorm, Dropout, FeedForward, mean_of_real, sinusoidal_positions
from training.models.x_linear import EncodedRegions, RegionUpdate, XLinearAttention, XLinearConfig


@dataclass(frozen=True)
class XTransformerConfig(XLinearConfig):
    """Hyper-parameters; the defaults are those of the published configuration.

    ``dropout`` is also behind every layer of the feed-forward and before the words' projection.
    """

    d_model: PositiveInt = 768
    attention_units: PositiveInt = 48
    d_ff: PositiveInt = 3072
    encoder_layers: PositiveInt = 6
    decoder_layers: PositiveInt = 6
    word_dropout: Share = 0.1
    """Dropout after the embedding of words."""
    max_length: PositiveInt = 54
    """Longest sequence of words, begin token included, that the position table covers."""


class XTransformerState(NamedTuple):
    """State of the decoder."""

    words: Slots
    """(B, S, d), embedded words."""
    caches: list[WordCache]
    """One per decoder layer."""


class XEncoderLayer(nn.Module):
    """An X-Linear attention block with the global vector as query, update of the regions, feed-forward."""

    def __init__(self, config: XTransformerConfig) -> None:
        super().__init__()
        self.attention = XLinearAttention(config)
        self.dropout = Dropout(config.dropout)
        self.update = RegionUpdate(config.d_model, config.region_dropout)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.dropout)
        self.feed_forward_norm = AddNorm(config.d_model, config.dropout)

    def forward(self, query: Tensor, regions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute the next global vector (B, 1, d) and regions (B, N, d)."""
        attended, _ = self.attention.attend(query, self.attention.project_keys_values(regions), mask)
        query = self.dropout(attended)
        regions = self.update(query, regions)
        return query, self.feed_forward_norm(regions, self.feed_forward(regions))


class XDecoderLayer(nn.Module):
    """Two X-Linear attention blocks with the global vectors as queries: over the words, then over the regions.

    All layers but the last then update the words.
    """

    def __init__(self, config: XTransformerConfig, *, last: bool) -> None:
        super().__init__()
        d = config.d_model
        self.self_attention = XLinearAttention(config)
        self.dropout = Dropout(config.dropout)
        self.cross_norm = nn.LayerNorm(d)
        self.cross_attention = XLinearAttention(config)
        self.norm = AddNorm(d, config.dropout)
        if not last:
            self.update = RegionUpdate(d, config.region_dropout)
            self.feed_forward = FeedForward(d, config.d_ff, config.dropout)
            self.feed_forward_norm = AddNorm(d, config.dropout)
        self.last = last

    def forward(
        self,
        query: Tensor,
        words: Tensor,
        visible: Tensor,
        cache: WordCache,
        image: KeysValues,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, WordCache]:
        """
        Args:
            query: (B, Q, d), the global vectors.
            words: (B, Q, d), those that are decoded.
            visible: (B, 1, Q, S + Q) bool, True where a word sees one of the S words of the state or of these words.
            cache: S slots.
            mask: (B, 1, 1, N) bool, True where a token is real; None when all are.

        Returns:
            Global vectors and words, both (B, Q, d), the attention weights (B, H, Q, N), the cache with S + Q slots.
        """
        cache = cache.append(self.self_attention.project_keys_values(words))
        attended, _ = self.self_attention.attend(query, cache.all_words(), visible)
        joined = words + self.dropout(attended)
        attended, weights = self.cross_attention.attend(self.cross_norm(joined), image, mask)
        query = self.norm(joined, attended)
        if self.last:
            return query, words, weights, cache
        updated = self.update(query, words)
        return query, self.feed_forward_norm(updated, self.feed_forward(updated)), weights, cache


class GlobalFactor(nn.Module):
    """LayerNorm(activation(W x + b)): one factor of the decoder's first global vectors."""

    def __init__(self, config: XTransformerConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.d_model, config.d_model)
        self.activation = config.new_activation()
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        factor: Tensor = self.norm(self.activation(self.linear(x)))
        return factor


class XTransformer(ParallelCaptioner):
    """The X-Transformer captioner. The attention of a word is that of the last layer, averaged over heads."""

    Config = XTransformerConfig
    buffer_policies: ClassVar = {"positions": BufferPolicy()}
    config: XTransformerConfig
    positions: Tensor
    """(max_length, d) float32, the position table; a constant that checkpoints contain."""

    def __init__(self, config: XTransformerConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.token_projection = nn.Linear(config.token_width, d)
        self.token_activation = config.new_activation()
        self.token_norm = nn.LayerNorm(d)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(XEncoderLayer(config) for _ in range(config.encoder_layers))
        self.whole_projection = nn.Linear(d * (config.encoder_layers + 1), d)
        self.whole_norm = nn.LayerNorm(d)
        self.word_embedding = nn.Embedding(config.vocabulary_size, d, padding_idx=PADDING_ID)
        self.register_buffer("positions", sinusoidal_positions(config.max_length, d))
        self.word_norm = nn.LayerNorm(d)
        self.word_dropout = Dropout(config.word_dropout)
        self.whole_factor = GlobalFactor(config)
        self.words_factor = GlobalFactor(config)
        layers = config.decoder_layers
        self.decoder = nn.ModuleList(XDecoderLayer(config, last=index == layers - 1) for index in range(layers))
        self.output_projection = nn.Linear(d * (layers + 1), 2 * d)
        self.output_norm = nn.LayerNorm(d)
        self.word_projection = nn.Linear(d, config.vocabulary_size)

    @property
    def max_words(self) -> int:
        return self.config.max_length

    def decoder_layers(self) -> list[XDecoderLayer]:
        """Return the decoder's layers, first to last."""
        return [layer for layer in self.decoder if isinstance(layer, XDecoderLayer)]

    def encode_regions(self, visual: Visual) -> tuple[Tensor, Tensor]:
        """Compute the global vector (B, 1, d) and the regions of the last level (B, N, d)."""
        mask = None if visual.mask is None else visual.mask[:, None, None]
        regions = self.dropout(self.token_norm(self.token_activation(self.token_projection(visual.tokens))))
        query = mean_of_real(regions, visual.mask)
        queries = [query]
        for layer in self.encoder:
            query, regions = layer(query, regions, mask)
            queries.append(query)
        return self.whole_norm(self.whole_projection(torch.cat(queries, dim=-1))), regions

    def encode(self, visual: Visual) -> EncodedRegions:
        whole, regions = self.encode_regions(visual)
        return EncodedRegions(
            self.whole_factor(whole),
            [layer.cross_attention.project_keys_values(regions).contiguous() for layer in self.decoder_layers()],
            None if visual.mask is None else visual.mask[:, None, None],
        )

    def initial_state(self, encoded: EncodedRegions, sequences: int) -> XTransformerState:
        words = Slots(encoded.whole.new_zeros(encoded.whole.shape[0], 0, self.config.d_model))
        keys = encoded.caches[0].keys
        return XTransformerState(words, [WordCache.empty(keys, self.config.heads) for _ in self.decoder])

    def decode_words(
        self,
        words: Tensor,
        positions: Tensor,
        visible: Tensor,
        state: XTransformerState,
        encoded: EncodedRegions,
        *,
        attention: bool,
    ) -> tuple[Tensor, Tensor | None, XTransformerState]:
        embedding = self.word_embedding(words) * math.sqrt(self.config.d_model)
        x = self.word_dropout(self.word_norm(embedding + functional.embedding(positions, self.positions)))
        embedded = state.words.append(x.to(state.words.values.dtype), axis=1)
        seen = visible.to(x.dtype)
        mean = (seen / seen.sum(dim=-1, keepdim=True)) @ embedded.values.to(x.dtype)
        query = self.dropout(encoded.whole * self.words_factor(mean))
        queries, caches = [query], []
        for layer, cache, image in zip(self.decoder_layers(), state.caches, encoded.caches, strict=True):
            query, x, weights, cache = layer(query, x, visible[:, None], cache, image, encoded.mask)
            queries.append(query)
            caches.append(cache)
        joined = self.output_projection(torch.cat(queries, dim=-1))
        logits = self.word_projection(self.dropout(self.output_norm(functional.glu(joined))))
        return logits, weights.mean(dim=1), XTransformerState(embedded, caches)
