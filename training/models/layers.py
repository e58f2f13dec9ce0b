"""Layers shared by the Transformer families: dropout, positions, feed-forward, encoder and decoder layers.

Shapes: B images, G sequences an image (its captions in training, its beams in decoding), T words, S words decoded
before, N visual tokens, M memory slots, H heads, d model width, d_h = d / H.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from training.models.attention import (
    KeysValues,
    MultiHeadAttention,
    TransformerConfig,
    WordAttention,
    WordCache,
    converted_for_products,
)
from training.models.captioner import Visual


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Compute the sinusoidal position table of Vaswani et al. (2017), (length, d_model) float32, a row a position."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))
    table = torch.zeros(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table.float()


def mean_of_real(x: Tensor, mask: Tensor | None) -> Tensor:
    """Compute the mean of the real tokens of each image, (B, 1, D), from ``x`` (B, N, D) and ``mask`` (B, N) bool."""
    if mask is None:
        return x.mean(dim=1, keepdim=True)
    real = mask[..., None].to(x.dtype)
    return (x * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)


def drop_patches(visual: Visual, share: float) -> Visual:
    """Leave out visual tokens at random, others of each image; those that remain keep their order: PatchDropout (Liu et
    al., WACV 2023).
    ``share``: of the N tokens, in [0, 1); at least one token remains. Padding is left out first.

    Returns:
        ``visual`` with N - floor(share * N) tokens. Drawn with torch's generator.
    """
    count = visual.tokens.shape[1]
    kept = count - int(share * count)
    if kept == count:
        return visual
    order = torch.rand(visual.tokens.shape[:2], device=visual.tokens.device)
    if visual.mask is not None:
        order = order + visual.mask
    places = order.topk(kept, dim=1).indices.sort(dim=1).values
    rows = torch.arange(len(places), device=places.device).unsqueeze(1)
    return visual._replace(
        tokens=visual.tokens[rows, places],
        mask=None if visual.mask is None else visual.mask[rows, places],
        boxes_xyxy=None if visual.boxes_xyxy is None else visual.boxes_xyxy[rows, places],
    )


class Dropout(nn.Module):
    """Dropout; on a CPU it draws its numbers about fifteen times as fast as ``nn.Dropout``.

    A step of cross-entropy (SMArT, d = 512, 20 images, 5 captions each, float32, one thread) takes 1.34 s of processor
    time with it and 1.53 s with ``nn.Dropout``.

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


class AddNorm(nn.Module):
    """LayerNorm(x + Dropout(f(x))), SMArT Eq. 6 (post-norm), or x + Dropout(f(LayerNorm(x))) (pre-norm)."""

    def __init__(self, d_model: int, dropout: float, *, norm_first: bool = False) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(d_model)
        self.norm_first = norm_first

    def inputs(self, x: Tensor) -> Tensor:
        """Return what f is applied to."""
        return self.norm(x) if self.norm_first else x

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        """Add ``update``, f of the :meth:`inputs`."""
        x = x + self.dropout(update)
        return x if self.norm_first else self.norm(x)


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
    """Memory-augmented self-attention over visual tokens, then feed-forward (SMArT Sec. III-B; M2, Eq. 5)."""

    def __init__(self, config: TransformerConfig, memory_slots: int = 0) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config, memory_slots)
        self.attention_norm = AddNorm(config.d_model, config.dropout, norm_first=config.norm_first)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.dropout)
        self.feed_forward_norm = AddNorm(config.d_model, config.dropout, norm_first=config.norm_first)

    def forward(self, x: Tensor, mask: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """Compute the next level, (B, N, d).

        Args:
            x: (B, N, d).
            mask: (B, N) bool, True where a token is real; None when all are.
            bias: (B, H, N, N) addend of the attention scores.
        """
        inputs = converted_for_products(self.attention_norm.inputs(x))
        x = self.attention_norm(x, self._attend(inputs, self.attention.extend_mask(mask), bias))
        return self.feed_forward_norm(x, self.feed_forward(self.feed_forward_norm.inputs(x)))

    def _attend(self, x: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        return self.attention.attend(x, self.attention.project_keys_values(x), mask, bias)[0]


class DecoderLayer(nn.Module):
    """Causal self-attention over words, cross-attention to the encoded tokens, feed-forward."""

    def __init__(self, config: TransformerConfig, level: int = -1) -> None:
        """``level``: index of the encoder level that the cross-attention attends to; -1: the last."""
        super().__init__()
        self.level = level
        self.self_attention = WordAttention(config)
        self.self_norm = AddNorm(config.d_model, config.dropout, norm_first=config.norm_first)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_norm = AddNorm(config.d_model, config.dropout, norm_first=config.norm_first)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.dropout)
        self.feed_forward_norm = AddNorm(config.d_model, config.dropout, norm_first=config.norm_first)

    def project_image(self, levels: Sequence[Tensor]) -> KeysValues:
        """Project the encoder levels, each (B, N, d), to the keys and values of the cross-attention."""
        return self.cross_attention.project_keys_values(levels[self.level]).contiguous()

    def forward(
        self, x: Tensor, words: WordCache, visible: Tensor, image: KeysValues, mask: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None, WordCache]:
        """Decode Q words of each image.

        Args:
            x: (B, Q, d). Every word of every caption or beam of an image is one of its Q queries, so that the image's
                keys and values are projected once and never repeated.
            words: S slots.
            visible: (B, 1, Q, S + Q) bool, True where a word sees one of the S words decoded before or of these words.
            mask: (B, 1, 1, N) bool, True where a token is real; None when all are.

        Returns:
            (B, Q, d); if asked for, the attention weights (B, H, Q, N); the cache with S + Q slots.
        """
        attended, words = self.self_attention.attend_words(self.self_norm.inputs(x), words, visible)
        x, attention = self.attend_image(self.self_norm(x, attended), image, mask, weights=weights)
        return x, attention, words

    def attend_image(
        self, x: Tensor, image: KeysValues, mask: Tensor | None, *, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Apply cross-attention and feed-forward; arguments and results as in :meth:`forward`."""
        attended, attention = self.cross_attention.attend(self.cross_norm.inputs(x), image, mask, weights=weights)
        x = self.cross_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(self.feed_forward_norm.inputs(x))), attention
