"""Building blocks shared by the Transformer families.

Shapes: B images, G sequences an image (its captions in training, its beams in decoding), T words, S words decoded
before, N visual tokens, M memory slots, H heads, d model width, d_h = d / H.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.captioner import Slots

MASKED_SCORE = -1e9
"""Attention score of a masked key; finite, so that float16 graphs stay free of NaN."""


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Compute the sinusoidal position table of Vaswani et al. (2017), row ``p`` for position ``p``.

    Returns:
        (length, d_model) float32. Row 0 is all zero: positions count from 1 and 0 is the padding position.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))
    table = torch.zeros(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    table[0] = 0.0
    return table.float()


def rows_from(table: Tensor, position: Tensor | int, count: int) -> Tensor:
    """Look up ``count`` consecutive rows of a position table, the first at ``position``.

    Args:
        table: (length, d).
        position: () int64 or int.

    Returns:
        (count, d)
    """
    if isinstance(position, int):
        return table[position : position + count]
    return functional.embedding(position + torch.arange(count, device=table.device), table)


class Dropout(nn.Module):
    """Dropout; on a CPU it draws its numbers about fifteen times as fast as ``nn.Dropout``.

    There 16 random bits decide about an element, so the probability is rounded to a multiple of 1/65536. Their
    generator is seeded by torch's, so that ``torch.manual_seed`` determines them.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.probability:
            return x
        if x.is_cuda or torch.compiler.is_compiling():
            return functional.dropout(x, self.probability)
        return x * self._factors(x)

    def _factors(self, x: Tensor) -> Tensor:
        """Draw the factors of the elements: 0 for those that are dropped, 1 / (1 - p) for the others."""
        seed = int(torch.randint(2**62, ()))
        bits = np.random.SFC64(seed).random_raw(-(-x.numel() // 4)).view(np.uint16)[: x.numel()]
        kept = torch.from_numpy(bits >= round(self.probability * 2**16)).view(x.shape)
        # Converting booleans is not vectorised; converting bytes is.
        return kept.view(torch.uint8).to(x.dtype).mul_(1 / (1 - self.probability))

    def extra_repr(self) -> str:
        return f"p={self.probability}"


def converted_for_products(x: Tensor) -> Tensor:
    """Convert the input of several products to autocast's type once; autocast would convert it for each of them."""
    if torch.is_autocast_enabled(x.device.type):
        return x.to(torch.get_autocast_dtype(x.device.type))
    return x


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with H heads, optionally with memory slots (SMArT, Eq. 1-4 and 7-8).

    Memory slots are learned keys and values appended to the projected ones; they do not depend on the input.
    As in M2's published code the stored parameters are scaled by sqrt(d_h) (keys) and sqrt(M) (values), and are
    drawn from N(0, 1/d_h) and N(0, 1/M), so that the slots start with unit variance.
    """

    def __init__(self, d_model: int, heads: int, memory_slots: int = 0) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of heads ({heads})")
        self.heads = heads
        self.d_head = d_model // heads
        self.memory_slots = memory_slots
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        for linear in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        if memory_slots:
            self.memory_keys = nn.Parameter(torch.randn(memory_slots, d_model) / math.sqrt(self.d_head))
            self.memory_values = nn.Parameter(torch.randn(memory_slots, d_model) / math.sqrt(memory_slots))

    def project_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Project ``x`` (B, n, d) to keys and values, memory slots appended: two tensors (B, H, n + M, d_h)."""
        keys, values = self.key(x), self.value(x)
        if self.memory_slots:
            memory_keys = self.memory_keys * math.sqrt(self.d_head)
            memory_values = self.memory_values * math.sqrt(self.memory_slots)
            batch = x.shape[0]
            keys = torch.cat([keys, memory_keys.to(keys.dtype).expand(batch, -1, -1)], dim=1)
            values = torch.cat([values, memory_values.to(values.dtype).expand(batch, -1, -1)], dim=1)
        return self.split_heads(keys), self.split_heads(values)

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Attend from ``x`` to projected keys and values.

        Args:
            x: (B, Q, d).
            keys, values: (B, H, K, d_h), from :meth:`project_keys_values`.
            mask: bool, broadcastable to (B, H, Q, K), True where a key may be attended to.

        Returns:
            (B, Q, d)
        """
        # The exporter's decomposition of the fused operator has more nodes. On a CPU in bf16 its gradient takes six
        # times as long as that of the separate products.
        if torch.compiler.is_exporting() or (keys.dtype == torch.bfloat16 and not keys.is_cuda):
            return self.attend_with_weights(x, keys, values, mask)[0]
        queries = self.split_heads(self.query(x))
        return self._merge_heads(functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask))

    def attend_with_weights(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attend as :meth:`attend` does.

        Returns:
            (B, Q, d) and the attention weights (B, H, Q, K).
        """
        queries = self.split_heads(self.query(x)) * self.d_head**-0.5
        scores = queries @ keys.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, MASKED_SCORE)
        weights = scores.softmax(dim=-1)
        return self._merge_heads(weights.to(values.dtype) @ values), weights

    def extend_mask(self, mask: Tensor | None) -> Tensor | None:
        """Extend a mask over N tokens (B, N) to (B, 1, 1, N + M): memory slots may always be attended to."""
        if mask is None:
            return None
        if self.memory_slots:
            mask = torch.cat([mask, mask.new_ones(mask.shape[0], self.memory_slots)], dim=1)
        return mask[:, None, None, :]

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the width by heads: (B, n, d) -> (B, H, n, d_h)."""
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def _merge_heads(self, mixed: Tensor) -> Tensor:
        """Apply the output projection: (B, H, n, d_h) -> (B, n, d)."""
        return self.output(mixed.transpose(1, 2).flatten(2))


class WordCache(NamedTuple):
    """Keys and values of all words that a self-attention layer has decoded."""

    keys: Slots
    """(B, H, S, d_h)"""
    values: Slots
    """(B, H, S, d_h)"""


class WordAttention(MultiHeadAttention):
    """Causal self-attention over words, with a cache of :class:`Slots` that are never reordered."""

    def empty_cache(self, like: Tensor, batch: int) -> WordCache:
        """Make a cache without slots, of the type and device of ``like``."""
        empty = like.new_zeros(batch, self.heads, 0, self.d_head)
        return WordCache(Slots(empty), Slots(empty))

    def attend_words(self, x: Tensor, cache: WordCache, visible: Tensor) -> tuple[Tensor, WordCache]:
        """Attend from Q words of each image to the words that they see.

        Args:
            x: (B, Q, d).
            cache: S slots.
            visible: (B, 1, Q, S + Q) bool, True where a word sees one of the S words of the cache or of these words.

        Returns:
            (B, Q, d) and the cache with S + Q slots.
        """
        x = converted_for_products(x)
        own_keys, own_values = self.project_keys_values(x)
        after = WordCache(cache.keys.append(own_keys, axis=2), cache.values.append(own_values, axis=2))
        return self.attend(x, after.keys.values, after.values.values, visible), after


class AddNorm(nn.Module):
    """LayerNorm(x + Dropout(f(x))), SMArT Eq. 6 (post-norm)."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return self.norm(x + self.dropout(update))


class FeedForward(nn.Module):
    """U ReLU(V x + b) + c with dropout after the ReLU, SMArT Eq. 5."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.dropout(torch.relu(self.inner(x))))


class EncoderLayer(nn.Module):
    """Memory-augmented self-attention over visual tokens, then feed-forward (SMArT Sec. III-B)."""

    def __init__(self, d_model: int, heads: int, d_ff: int, memory_slots: int, dropout: float) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads, memory_slots)
        self.attention_norm = AddNorm(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.feed_forward_norm = AddNorm(d_model, dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Compute the next level, (B, N, d), from ``x`` (B, N, d); ``mask`` (B, N) is True where a token is real."""
        inputs = converted_for_products(x)
        keys, values = self.attention.project_keys_values(inputs)
        x = self.attention_norm(x, self.attention.attend(inputs, keys, values, self.attention.extend_mask(mask)))
        return self.feed_forward_norm(x, self.feed_forward(x))


class ImageCache(NamedTuple):
    """Keys and values of an image's tokens for one cross-attention layer."""

    keys: Tensor
    """(B, H, N, d_h)"""
    values: Tensor
    """(B, H, N, d_h)"""


class DecoderLayer(nn.Module):
    """Causal self-attention over words, cross-attention to the encoded tokens, feed-forward."""

    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = WordAttention(d_model, heads)
        self.self_norm = AddNorm(d_model, dropout)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.cross_norm = AddNorm(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.feed_forward_norm = AddNorm(d_model, dropout)

    def attend_image(
        self, x: Tensor, image: ImageCache, mask: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Apply cross-attention and feed-forward.

        Args:
            x: (B, Q, d). Every word of every caption or beam of an image is one of its Q queries, so that the image's
                keys and values are projected once and never repeated.
            image: the image's keys and values.
            mask: (B, 1, 1, N) bool, True where a token is real; None when all are.
            weights: whether to return the attention weights.

        Returns:
            (B, Q, d) and, if asked for, the attention weights (B, H, Q, N).
        """
        if weights:
            attended, attention = self.cross_attention.attend_with_weights(x, image.keys, image.values, mask)
        else:
            attended, attention = self.cross_attention.attend(x, image.keys, image.values, mask), None
        x = self.cross_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), attention
