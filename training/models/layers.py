"""Building blocks shared by the Transformer families.

Shapes: B images, G sequences an image (its five captions in training, its beams in decoding), T words,
N visual tokens, M memory slots, H heads, d model width, d_h = d / H.
"""

import math

import torch
from torch import Tensor, nn


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """The sinusoidal position table of Vaswani et al. (2017), row ``p`` for position ``p``.

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

    def _split(self, x: Tensor) -> Tensor:
        """(B, n, d) -> (B, H, n, d_h)"""
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def project_keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of ``x`` (B, n, d), memory slots appended: two tensors (B, H, n + M, d_h)."""
        keys, values = self.key(x), self.value(x)
        if self.memory_slots:
            memory_keys = self.memory_keys * math.sqrt(self.d_head)
            memory_values = self.memory_values * math.sqrt(self.memory_slots)
            batch = x.shape[0]
            keys = torch.cat([keys, memory_keys.to(keys.dtype).expand(batch, -1, -1)], dim=1)
            values = torch.cat([values, memory_values.to(values.dtype).expand(batch, -1, -1)], dim=1)
        return self._split(keys), self._split(values)

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Queries from ``x`` against projected keys and values.

        Args:
            x: (B, Q, d).
            keys, values: (B, H, K, d_h), from :meth:`project_keys_values`.
            mask: bool, broadcastable to (B, H, Q, K); True may be attended. A row must allow one key at least.

        Returns:
            (B, Q, d) and the attention weights (B, H, Q, K).
        """
        queries = self._split(self.query(x)) * self.d_head**-0.5
        scores = queries @ keys.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = scores.softmax(dim=-1)
        mixed = (weights.to(values.dtype) @ values).transpose(1, 2).flatten(2)
        return self.output(mixed), weights

    def extend_mask(self, mask: Tensor | None) -> Tensor | None:
        """Mask over N tokens (B, N) -> (B, 1, 1, N + M): memory slots are always attended."""
        if mask is None:
            return None
        if self.memory_slots:
            mask = torch.cat([mask, mask.new_ones(mask.shape[0], self.memory_slots)], dim=1)
        return mask[:, None, None, :]


class AddNorm(nn.Module):
    """LayerNorm(x + Dropout(f(x))), SMArT Eq. 6 (post-norm)."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        return self.norm(x + self.dropout(update))


class FeedForward(nn.Module):
    """U ReLU(V x + b) + c with dropout after the ReLU, SMArT Eq. 5."""

    def __init__(self, d_model: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

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
        """(B, N, d), mask (B, N) True where a token is real -> (B, N, d)."""
        keys, values = self.attention.project_keys_values(x)
        attended, _ = self.attention.attend(x, keys, values, self.attention.extend_mask(mask))
        x = self.attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x))


class DecoderLayer(nn.Module):
    """Masked self-attention over words, cross-attention to the encoded tokens, feed-forward."""

    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_norm = AddNorm(d_model, dropout)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.cross_norm = AddNorm(d_model, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.feed_forward_norm = AddNorm(d_model, dropout)

    def attend_image(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Cross-attention and feed-forward.

        ``x`` is (B, Q, d): every word of every caption or beam of an image is one query among Q, so an image's
        keys and values are projected once and never repeated for its captions or beams.
        """
        attended, weights = self.cross_attention.attend(x, keys, values, mask)
        x = self.cross_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), weights
