"""Multi-head attention of the Transformer families: with memory slots, with a cache of words.

Shapes: B images, N visual tokens, M memory slots, H heads, Q queries, K keys, S words decoded before, d model width,
d_h = d / H.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.configs.ranges import PositiveInt, Share
from training.models.captioner import CaptionerConfig, Slots

MASKED_SCORE = -6e4
"""Attention score of a masked key; finite and in the range of float16, so that it stays free of NaN and infinity."""


@dataclass(frozen=True)
class TransformerConfig(CaptionerConfig):
    """Hyper-parameters of every Transformer family; the defaults are the sizes of M2's baseline."""

    d_model: PositiveInt = 512
    heads: PositiveInt = 8
    d_ff: PositiveInt = 2048
    encoder_layers: PositiveInt = 3
    decoder_layers: PositiveInt = 3
    dropout: Share = 0.1
    attention_on_attention: bool = False
    """Whether attention on attention takes the place of the output projection of every attention (M2, Table 1)."""
    output_bias: bool = False
    """Whether the projection to the words has a bias; the papers have none, smart-home-6 lowers its end token by it."""
    max_length: PositiveInt = 54
    """Longest sequence of words, begin token included, that the position table covers."""
    norm_first: ClassVar[bool] = False
    """Whether the parts of a layer normalise their inputs instead of the sums of inputs and outputs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")


def converted_for_products(x: Tensor) -> Tensor:
    """Convert the input of several products to autocast's type once; autocast would convert it for each of them."""
    if torch.is_autocast_enabled(x.device.type):
        return x.to(torch.get_autocast_dtype(x.device.type))
    return x


class AttentionOnAttention(nn.Module):
    """Information vector times attention gate, each a linear layer of the attention's result and its query.

    AoANet (Huang et al., ICCV 2019), Eq. 3-5; it takes the place of the output projection (M2, Sec. 5.2).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.information = nn.Linear(2 * d_model, d_model)
        self.gate = nn.Linear(2 * d_model, d_model)

    def forward(self, attended: Tensor, query: Tensor) -> Tensor:
        """Gate ``attended`` (..., Q, d), the joined heads, by ``query``, which broadcasts to its shape."""
        joined = torch.cat([attended, query.to(attended.dtype).expand_as(attended)], dim=-1)
        information: Tensor = self.information(joined)
        return information * torch.sigmoid(self.gate(joined))


class HeadProjections(nn.Module):
    """Queries, keys and values of H heads."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        source_width: int | None = None,
        *,
        key_value_heads: int | None = None,
        bias: bool = True,
    ) -> None:
        """
        Args:
            source_width: width of what is attended to; None: d.
            key_value_heads: heads of the keys and values; None: H.
        """
        super().__init__()
        source_width = d_model if source_width is None else source_width
        self.heads, self.d_head = heads, d_model // heads
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(source_width, (key_value_heads or heads) * self.d_head, bias=bias)
        self.value = nn.Linear(source_width, (key_value_heads or heads) * self.d_head, bias=bias)

    def scaled_queries(self, x: Tensor) -> Tensor:
        """Project ``x`` (B, Q, d) to queries (B, H, Q, d_h), divided by sqrt(d_h)."""
        return self.split_heads(self.query(x)) * self.d_head**-0.5

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the width by heads: (B, n, d) -> (B, H, n, d_h)."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(-3, -2)


class KeysValues(NamedTuple):
    """Keys and values that a layer attends to."""

    keys: Tensor
    """(B, H, N, d_h)"""
    values: Tensor
    """(B, H, N, d_h)"""

    def contiguous(self) -> "KeysValues":
        """Store them contiguously: every word multiplies those of an image, and would copy them for it."""
        return KeysValues(self.keys.contiguous(), self.values.contiguous())


class MultiHeadAttention(HeadProjections):
    """Scaled dot-product attention with H heads, optionally with memory slots (SMArT, Eq. 1-4 and 7-8; M2, Eq. 3).

    Memory slots are learned keys and values appended to the projected ones; they do not depend on the input.
    As in M2's published code the stored parameters are multiplied by sqrt(d_h) (keys) and sqrt(M) (values).

    Without memory slots, all tensors may have several leading axes that broadcast in place of B, e.g. (B, L) for the
    levels of an encoder.
    """

    def __init__(self, config: TransformerConfig, memory_slots: int = 0) -> None:
        super().__init__(config.d_model, config.heads)
        d_model = config.d_model
        self.memory_slots = memory_slots
        self.output = AttentionOnAttention(d_model) if config.attention_on_attention else nn.Linear(d_model, d_model)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.zeros_(part.bias)
        if memory_slots:
            self.memory_keys = nn.Parameter(torch.empty(memory_slots, d_model))
            self.memory_values = nn.Parameter(torch.empty(memory_slots, d_model))

    def project_keys_values(self, x: Tensor) -> KeysValues:
        """Project ``x`` (B, n, d) to keys and values (B, H, n + M, d_h), memory slots appended."""
        keys, values = self.key(x), self.value(x)
        if self.memory_slots:
            memory_keys = self.memory_keys * math.sqrt(self.d_head)
            memory_values = self.memory_values * math.sqrt(self.memory_slots)
            batch = x.shape[0]
            keys = torch.cat([keys, memory_keys.to(keys.dtype).expand(batch, -1, -1)], dim=1)
            values = torch.cat([values, memory_values.to(values.dtype).expand(batch, -1, -1)], dim=1)
        return KeysValues(self.split_heads(keys), self.split_heads(values))

    def attend(
        self, x: Tensor, source: KeysValues, mask: Tensor | None, bias: Tensor | None = None, *, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from ``x`` to K keys and values.

        Args:
            x: (B, Q, d).
            mask: bool, broadcastable to (B, H, Q, K), True where a key may be attended to.
            bias: addend of the scores, broadcastable as the mask is.

        Returns:
            (B, Q, d) and, if asked for, the attention weights (B, H, Q, K).
        """
        keys, values = source
        # The exporter's decomposition of the fused operator has more nodes. On a CPU in bf16 its gradient takes six
        # times as long as that of the separate products.
        is_slower = torch.compiler.is_exporting() or (keys.dtype == torch.bfloat16 and not keys.is_cuda)
        if weights or bias is not None or is_slower:
            scores = self.scaled_queries(x) @ keys.transpose(-2, -1)
            if bias is not None:
                scores = scores + bias
            if mask is not None:
                scores = scores.masked_fill(~mask, MASKED_SCORE)
            shares = scores.softmax(dim=-1)
            return self._merge_heads(shares.to(values.dtype) @ values, x), shares if weights else None
        queries = self.split_heads(self.query(x))
        leading = keys.shape[:-3]
        if len(leading) == 1:
            mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        else:  # the fast kernels of the fused operator take one leading axis
            queries = queries.expand(*leading, *queries.shape[-3:])
            if mask is not None:
                mask = mask.expand(*leading, *mask.shape[-3:]).flatten(0, -4)
            queries, keys, values = (x.flatten(0, -4) for x in (queries, keys, values))
            mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
            mixed = mixed.unflatten(0, leading)
        return self._merge_heads(mixed, x), None

    def extend_mask(self, mask: Tensor | None) -> Tensor | None:
        """Extend a mask over N tokens (B, N) to (B, 1, 1, N + M): memory slots may always be attended to."""
        if mask is None:
            return None
        if self.memory_slots:
            mask = torch.cat([mask, mask.new_ones(mask.shape[0], self.memory_slots)], dim=1)
        return mask[:, None, None, :]

    def _merge_heads(self, mixed: Tensor, x: Tensor) -> Tensor:
        """Apply the output projection: (B, H, n, d_h) -> (B, n, d); ``x`` (B, n, d) is what attended."""
        joined = mixed.transpose(-3, -2).flatten(-2)
        if isinstance(self.output, AttentionOnAttention):
            return self.output(joined, x)
        return self.output(joined)


def draw_matrices(module: nn.Module) -> None:
    """Draw all parameters with two axes or more by Xavier's uniform rule, embeddings and memory slots included.

    The published codes of M2 and of the Object Relation Transformer do so after the initialisation of every layer, and
    thereby replace M2's N(0, 1 / d_h) and N(0, 1 / M) for memory slots, which its paper names.
    """
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if parameter.dim() > 1:
                # The published slots have a leading axis of 1, with which the rule draws smaller values.
                is_memory = isinstance(part, MultiHeadAttention) and name in ("memory_keys", "memory_values")
                nn.init.xavier_uniform_(parameter.detach()[None] if is_memory else parameter)


class WordCache(NamedTuple):
    """Keys and values of all words that a self-attention layer has decoded."""

    keys: Slots
    """(B, H, S, d_h)"""
    values: Slots
    """(B, H, S, d_h)"""

    @classmethod
    def empty(cls, like: Tensor, heads: int) -> "WordCache":
        """Make a cache without slots for ``like``, keys of an image's tokens (B, ..., d_h)."""
        empty = Slots(like.new_zeros(like.shape[0], heads, 0, like.shape[-1]))
        return cls(empty, empty)

    def append(self, words: KeysValues) -> "WordCache":
        """Append the keys and values of words."""
        return WordCache(self.keys.append(words.keys, axis=2), self.values.append(words.values, axis=2))

    def all_words(self) -> KeysValues:
        """Return the keys and values."""
        return KeysValues(self.keys.values, self.values.values)


class WordAttention(MultiHeadAttention):
    """Causal self-attention over words, with a cache of :class:`Slots` that are never reordered."""

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
        after = cache.append(self.project_keys_values(x))
        return self.attend(x, after.all_words(), visible)[0], after
