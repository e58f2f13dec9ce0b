"""PMA-Net: a Transformer whose decoder attends to prototypes of its own past (Barraco et al., ICCV 2023).

In training every self-attention layer of the decoder keeps a bank of the keys and values of recent words. Twice an
epoch their prototypes are computed (:func:`key_prototypes`, :func:`value_prototypes`); the layer attends to these as to
the words. The code of the paper could not be read: docs/families/pma_net.md lists what the paper leaves open and what
is chosen here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from training.configs.ranges import PositiveInt
from training.models.attention import MASKED_SCORE, TransformerConfig, WordAttention, WordCache, converted_for_products
from training.models.captioner import (
    PADDING_ID,
    BufferPolicy,
    HookContext,
    State,
    join_sequences,
    split_sequences,
    visible_slots,
)
from training.models.layers import DecoderLayer
from training.models.transformer import EncodedImage, Transformer

_DISTANCES_AT_A_TIME = 1 << 25
"""Distances that are computed at a time, 128 MB: the neighbours of fewer prototypes at a time take twice as long."""


@dataclass(frozen=True)
class PmaNetConfig(TransformerConfig):
    """Hyper-parameters; the defaults are those of the paper's Sec. 4.2 as far as it states them."""

    encoder_layers: PositiveInt = 6
    decoder_layers: PositiveInt = 6
    prototypes: PositiveInt = 1024
    """m, prototypes of each layer."""
    bank_steps: PositiveInt = 1500
    """T, training steps whose words the bank holds."""
    bank_words: PositiveInt = 16
    """Words of a step that the bank holds, drawn at random; the paper keeps all, 10^8 vectors a layer."""
    refreshes_per_epoch: PositiveInt = 2
    """Number of times in an epoch that the prototypes are computed anew, once the bank is full."""
    neighbours: PositiveInt = 8
    """k, keys whose values are interpolated in Eq. 4."""
    cluster_iterations: PositiveInt = 10
    """Iterations of k-means."""
    clusters: Literal["all_heads", "each_head", "joined_heads"] = "all_heads"
    """What is clustered: ``all_heads``, the vectors of all heads together, as the paper counts them, so that all heads
    have the same prototypes; ``each_head``, those of each head by themselves; ``joined_heads``, the vectors of width
    ``d_model``."""
    normalise_values: bool = False
    """Whether the weights of Eq. 4 are divided by their sum; they are not in the paper."""
    segment_embeddings: bool = True
    """Whether a learned vector is added to the keys of words and another one to prototypes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prototypes", "neighbours"):
            if getattr(self, name) > self.bank_steps * self.bank_words:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) must be at most bank_steps * bank_words, the vectors of the bank"
                )


class PrototypeAttention(WordAttention):
    """Causal self-attention over words and prototypes, with the bank that the prototypes are computed from."""

    bank_keys: Tensor
    """(bank_steps * bank_words, d) float16, the last ones; a ring."""
    bank_values: Tensor
    """As ``bank_keys``."""
    bank_count: Tensor
    """() int64, number of words that have been put into the bank so far."""
    prototype_keys: Tensor
    """(H, m, d_h) float32, Eq. 3."""
    prototype_values: Tensor
    """(H, m, d_h) float32, Eq. 4."""
    ready: Tensor
    """() bool, whether the prototypes have been computed; before that they are not attended to."""

    policies: ClassVar[dict[str, BufferPolicy]] = {
        # The first process alone computes prototypes, of its own bank, and they are sent to all others.
        "bank_keys": BufferPolicy(release=False),
        "bank_values": BufferPolicy(release=False),
        "bank_count": BufferPolicy(release=False),
        "prototype_keys": BufferPolicy(synchronise=True),
        "prototype_values": BufferPolicy(synchronise=True),
        "ready": BufferPolicy(synchronise=True),
    }

    def __init__(self, config: PmaNetConfig) -> None:
        super().__init__(config)
        self._config = config
        if config.segment_embeddings:
            # Column 0 for prototypes, column 1 for words.
            self.segments = nn.Parameter(torch.empty(self.heads, self.d_head, 2))
        size = (config.bank_steps * config.bank_words, config.d_model)
        self.register_buffer("bank_keys", torch.zeros(size, dtype=torch.float16))
        self.register_buffer("bank_values", torch.zeros(size, dtype=torch.float16))
        self.register_buffer("bank_count", torch.tensor(0))
        memory = (self.heads, config.prototypes, self.d_head)
        self.register_buffer("prototype_keys", torch.zeros(memory))
        self.register_buffer("prototype_values", torch.zeros(memory))
        self.register_buffer("ready", torch.tensor(False))

    def attend_words(self, x: Tensor, cache: WordCache, visible: Tensor) -> tuple[Tensor, WordCache]:
        """Attend from Q words of each image to the prototypes and to the words that they see (Eq. 1).

        The cache has the words alone. Prototypes are the same for all images, so that products with them need no copy.
        """
        x = converted_for_products(x)
        own = self.project_keys_values(x)
        after, dtype = cache.append(own), own.values.dtype
        weights, count = self._attention(x, after.keys.values, visible).to(dtype), self._config.prototypes
        of_prototypes = _by_head(weights[..., :count], self.prototype_values.to(dtype))
        mixed = of_prototypes + weights[..., count:] @ after.values.values
        return self._merge_heads(mixed, x), after

    def memory_share(self, x: Tensor, visible: Tensor) -> Tensor:
        """Compute how much Q words attend to prototypes, in place of the words that they see.

        Args:
            x: (B, Q, d).
            visible: (B, 1, Q, Q) bool, True where a word sees a word.

        Returns:
            (B, Q), mean weight of a prototype divided by the sum of the mean weights of a prototype and of a word.
        """
        keys, _ = self.project_keys_values(x)
        weights, count = self._attention(x, keys, visible), self._config.prototypes
        of_prototype = weights[..., :count].mean(dim=(1, 3))
        of_word = weights[..., count:].mean(dim=1).sum(dim=-1) / visible[:, 0].sum(dim=-1)
        return of_prototype / (of_prototype + of_word)

    def _attention(self, x: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        """Compute the attention weights (B, H, Q, m + K), prototypes first, from words (B, Q, d) to prototypes and to
        keys of words (B, H, K, d_h).
        """
        queries = self.scaled_queries(x)
        of_prototypes = _by_head(queries, self.prototype_keys.to(queries.dtype).transpose(1, 2))
        of_words = queries @ keys.transpose(-2, -1)
        if self._config.segment_embeddings:
            # q (k + s) = q k + q s: neither prototypes nor cached keys need to be changed.
            offsets = _by_head(queries, self.segments.to(queries.dtype))
            of_prototypes, of_words = of_prototypes + offsets[..., :1], of_words + offsets[..., 1:]
        of_prototypes = of_prototypes.masked_fill(~self.ready, MASKED_SCORE)
        of_words = of_words.masked_fill(~visible, MASKED_SCORE)
        return torch.cat([of_prototypes, of_words], dim=-1).softmax(dim=-1)

    @torch.no_grad()
    def remember(self, keys: Tensor, values: Tensor, real: Tensor) -> None:
        """Put ``bank_words`` random words into the bank (Eq. 2).

        Args:
            keys, values: (B, H, Q, d_h), of the words.
            real: (B, Q) bool, False for padding.
        """
        count = self._config.bank_words
        chosen = torch.multinomial(real.flatten().float(), count, replacement=True)
        places = (self.bank_count + torch.arange(count, device=real.device)) % len(self.bank_keys)
        for bank, heads in ((self.bank_keys, keys), (self.bank_values, values)):
            rows = heads.transpose(1, 2).flatten(2).flatten(0, 1)
            bank.index_copy_(0, places, rows.index_select(0, chosen).to(bank.dtype))
        self.bank_count += count

    @property
    def bank_is_full(self) -> bool:
        return int(self.bank_count) >= len(self.bank_keys)

    @torch.no_grad()
    def refresh(self, random: np.random.Generator) -> None:
        """Compute the prototypes of the bank."""
        config = self._config
        keys, values = (self._grouped(bank.float()) for bank in (self.bank_keys, self.bank_values))
        groups, size, _ = keys.shape
        first = np.stack([random.choice(size, config.prototypes, replace=False) for _ in range(groups)])
        of_keys = key_prototypes(keys, torch.from_numpy(first).to(keys.device), config.cluster_iterations)
        of_values = value_prototypes(of_keys, keys, values, config.neighbours, normalise=config.normalise_values)
        for buffer, found in ((self.prototype_keys, of_keys), (self.prototype_values, of_values)):
            buffer.copy_(self.split_heads(found)[0] if config.clusters == "joined_heads" else found)
        self.ready.fill_(True)

    def _grouped(self, bank: Tensor) -> Tensor:
        """Arrange a bank (n, d) by what is clustered together: (G, vectors, width)."""
        if self._config.clusters == "joined_heads":
            return bank[None]
        by_head = self.split_heads(bank)
        return by_head if self._config.clusters == "each_head" else by_head.flatten(0, 1)[None]


def _by_head(x: Tensor, memory: Tensor) -> Tensor:
    """Multiply (B, H, Q, n) by the matrix of each head, (H, n, p), which is not repeated for each image."""
    joined = x.transpose(0, 1).flatten(1, 2) @ memory
    return joined.unflatten(1, (-1, x.shape[2])).transpose(0, 1)


def key_prototypes(keys: Tensor, first: Tensor, iterations: int) -> Tensor:
    """Cluster keys by k-means, Lloyd's algorithm (Eq. 3), on their device. The paper uses faiss on a GPU.

    Args:
        keys: (G, n, d) float32, n vectors of width d in G banks that are clustered each by itself.
        first: (G, m) int64, for m prototypes the keys that it begins with.

    Returns:
        (G, m, d), the centroids. An empty cluster keeps its centroid.
    """
    groups, _, width = keys.shape
    centroids = keys.gather(1, first[..., None].expand(-1, -1, width))
    for _ in range(iterations):
        nearest = torch.cat([_distances(part, centroids).argmin(dim=2) for part in _parts(keys, centroids)], dim=1)
        # One axis for the clusters of all banks: the gradient-less sum over one axis is the fast one.
        clusters = (nearest + torch.arange(groups, device=keys.device)[:, None] * first.shape[1]).flatten()
        sums = torch.zeros_like(centroids).flatten(0, 1).index_add_(0, clusters, keys.flatten(0, 1))
        counts = torch.bincount(clusters, minlength=first.numel())[:, None]
        centroids = torch.where(counts > 0, sums / counts.clamp(min=1), centroids.flatten(0, 1)).view_as(centroids)
    return centroids


def value_prototypes(prototypes: Tensor, keys: Tensor, values: Tensor, neighbours: int, *, normalise: bool) -> Tensor:
    """Interpolate the values of the keys nearest to each prototype (Eq. 4).

    Args:
        prototypes: (G, m, d).
        keys, values: (G, n, d).
        neighbours: k, at most n.
        normalise: divide the weights exp(-distance) by their sum; Eq. 4 does not.

    Returns:
        (G, m, d)
    """
    found = []
    for part in _parts(prototypes, keys):
        nearest = _distances(part, keys).topk(neighbours, dim=2, largest=False).indices.flatten(1)[..., None]
        near_keys, near_values = (
            bank.gather(1, nearest.expand(-1, -1, bank.shape[2])).unflatten(1, (-1, neighbours))
            for bank in (keys, values)
        )
        near = (part[:, :, None] - near_keys).norm(dim=-1)
        weights = (-near).softmax(dim=-1) if normalise else (-near).exp()
        found.append((weights[..., None] * near_values).sum(dim=2))
    return torch.cat(found, dim=1)


def _parts(x: Tensor, others: Tensor) -> Iterator[Tensor]:
    """Split the vectors ``x`` so that the distances of a part to all ``others`` fit."""
    yield from x.split(max(1, _DISTANCES_AT_A_TIME // (x.shape[0] * others.shape[1])), dim=1)


def _distances(x: Tensor, others: Tensor) -> Tensor:
    """Compute squared distances less the squares of ``x``, which are the same for all ``others``: (G, a, b)."""
    return torch.baddbmm(others.square().sum(dim=2)[:, None], x, others.transpose(1, 2), alpha=-2)


class PmaNet(Transformer):
    """The PMA-Net captioner."""

    Config = PmaNetConfig
    config: PmaNetConfig

    def __init__(self, config: PmaNetConfig) -> None:
        super().__init__(config)
        # The number of layers is that of the configuration, so the policies are those of an instance.
        self.buffer_policies = {  # type: ignore[misc]
            **type(self).buffer_policies,
            **{
                f"decoder.{index}.self_attention.{name}": policy
                for index in range(config.decoder_layers)
                for name, policy in PrototypeAttention.policies.items()
            },
        }

    def _new_decoder_layer(self, index: int) -> DecoderLayer:
        layer = super()._new_decoder_layer(index)
        layer.self_attention = PrototypeAttention(self.config)
        return layer

    def memories(self) -> list[PrototypeAttention]:
        """Return the decoder's self-attention layers, first to last."""
        attentions = (layer.self_attention for layer in self.decoder_layers())
        return [attention for attention in attentions if isinstance(attention, PrototypeAttention)]

    def decode_words(
        self, words: Tensor, positions: Tensor, visible: Tensor, state: State, encoded: EncodedImage, *, attention: bool
    ) -> tuple[Tensor, Tensor | None, State]:
        logits, weights, caches = super().decode_words(words, positions, visible, state, encoded, attention=attention)
        if self.training and torch.is_grad_enabled() and not torch.compiler.is_exporting():
            real, count = words != PADDING_ID, words.shape[1]
            for memory, cache in zip(self.memories(), caches, strict=True):
                memory.remember(cache.keys.values[:, :, -count:], cache.values.values[:, :, -count:], real)
        return logits, weights, caches

    def on_step(self, context: HookContext) -> None:
        """Compute the prototypes anew, twice an epoch at even intervals, from the steps in the banks of the first
        process, whose buffers are sent to all others.
        """
        count = self.config.refreshes_per_epoch
        if context.step not in {index * context.steps_per_epoch // count for index in range(count)}:
            return
        if not context.is_first:
            return
        for attention in self.memories():
            if attention.bank_is_full:
                attention.refresh(context.random)

    def memory_attention(self, words: Tensor, encoded: EncodedImage) -> Tensor:
        """Compute how much the prediction after each word attends to prototypes, averaged over the layers (Sec. 4.3).
        ``words``: (B, G, T) int64, begin token and words, padded.

        Returns:
            (B, G, T) in [0, 1].
        """
        batch, group, length = words.shape
        nothing = torch.zeros(batch, group, 0, dtype=torch.bool, device=words.device)
        visible = visible_slots(nothing, length)[:, None]
        x = self.embed_words(join_sequences(words), self.positions[1 : 1 + length].repeat(group, 1))
        shares = []
        caches = self.initial_state(encoded, 1)
        layers = zip(self.decoder_layers(), self.memories(), caches, encoded.caches, strict=True)
        for layer, attention, cache, image in layers:
            shares.append(attention.memory_share(x, visible))
            x, _, _ = layer(x, cache, visible, image, encoded.mask, weights=False)
        return split_sequences(torch.stack(shares).mean(dim=0)[..., None], length)[..., 0]
