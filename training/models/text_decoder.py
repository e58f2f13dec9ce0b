"""The Transformer decoders of published captioners, described by their parts: one layer serves all of them.

A config says which norm a layer has and where, how positions are known (learnt, rotary), how many heads share keys and
values, whether the feed-forward is gated, and whether words see the image by cross-attention or as a prefix of their
self-attention. :mod:`training.models.published_decoders` has the published families, which are these values;
:mod:`export.import_checkpoint.text_decoders` reads the published weights.

Shapes: B images, N visual tokens, n tokens of a prefix, H heads, H_k heads of keys and values, Q queries, S words
decoded before, d model width, d_h = d / H.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from training.models.attention import MASKED_SCORE, HeadProjections, KeysValues, WordCache, converted_for_products
from training.models.captioner import CaptionerConfig, ParallelCaptioner, Slots, Visual
from training.models.layers import Dropout


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
}
"""Activations by their names in a published config.json."""
GATES = {**ACTIVATIONS, "silu": functional.silu}
"""Activations of gated layers."""
NORMS: dict[str, type[nn.LayerNorm] | type[nn.RMSNorm]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


@dataclass(frozen=True)
class TextDecoderConfig(CaptionerConfig):
    """The parts of a decoder; the defaults are BERT's with cross-attention."""

    d_model: PositiveInt = 768
    heads: PositiveInt = 12
    key_value_heads: PositiveInt | None = None
    """Heads of keys and values in self-attention, each for as many heads of queries; None: as many as ``heads``."""
    d_ff: PositiveInt = 3072
    layers: PositiveInt = 12
    dropout: Share = 0.1
    activation: str = "gelu"
    """A key of :data:`ACTIVATIONS`, or of :data:`GATES` where the layers are gated."""
    gated: bool = False
    """Whether the feed-forward multiplies its inner values by an activated second projection."""
    bias: bool = True
    """Whether the linear layers have one."""
    norm: Literal["layer", "rms"] = "layer"
    """``layer`` or ``rms``."""
    epsilon: PositiveFloat = 1e-12
    """Addend of the variance in every norm of the decoder."""
    norm_first: bool = False
    """Whether a norm comes before its part of the layer, and one after the last layer (GPT-2, Llama); otherwise it
    comes after each addition (BERT)."""
    embedding_norm: bool = True
    """Whether the embeddings are normed before the first layer."""
    transform: bool = True
    """Whether a layer, its activation and a norm come before the projection to the words, as in BERT."""
    word_bias: bool = True
    """Whether the projection to the words has a bias."""
    tied: bool = True
    """Whether the embeddings of the words are the weights of the projection to them."""
    max_length: PositiveInt = 512
    """Longest sequence of words, prompt included; of learnt positions, which the table covers."""
    rotary_base: NonNegativeFloat = 0.0
    """Base of the frequencies of rotary positions; 0: positions are learnt, and those of words count words alone."""
    image: Literal["cross", "prefix"] = "cross"
    """``cross``: words see the image by cross-attention; ``prefix``: as a prefix of their self-attention."""
    causal_image: bool = False
    """Whether a token of the prefix sees only what stands before it; otherwise tokens see each other."""
    project_tokens: bool = False
    """Whether a linear layer brings the visual tokens to the decoder's width first."""
    token_epsilon: NonNegativeFloat = 0.0
    """Addend of the variance in the LayerNorm of projected tokens; 0: they have none."""
    before_image: list[int] = field(default_factory=list)
    """Ids of the words before the image, where it is a prefix."""
    prompt: list[int] = field(default_factory=list)
    """Ids of the words between the image and every caption, the begin token first, if there is one; empty: the begin
    token alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation not in (known := GATES if self.gated else ACTIVATIONS):
            raise ValueError(f"activation must be one of {', '.join(known)}, not {self.activation!r}")
        for whole, part in (("d_model", "heads"), ("heads", "key_value_heads")):
            if getattr(self, whole) % (getattr(self, part) or 1):
                raise ValueError(
                    f"{whole} ({getattr(self, whole)}) must be a multiple of {part} ({getattr(self, part)})"
                )
        words = [*self.before_image, *self.prompt]
        if not all(0 <= word < self.vocabulary_size for word in words):
            raise ValueError(f"prompt must have word ids below {self.vocabulary_size}, not {words}")
        if len(words) >= self.max_length:
            raise ValueError(f"prompt has {len(words)} words, but max_length is {self.max_length}")
        if self.before_image and self.image == "cross":
            raise ValueError("before_image needs an image that is a prefix")

    def make_norm(self) -> nn.Module:
        """Make a norm of the decoder."""
        return NORMS[self.norm](self.d_model, eps=self.epsilon)


class DecoderContext(NamedTuple):
    """Everything that decoding needs of B images; lists have one entry a layer, or none."""

    image: list[KeysValues]
    """Keys and values of the cross-attention; none where the image is a prefix."""
    image_mask: Tensor | None
    """(B, 1, 1, N) bool, True where a token is real; None when all are."""
    prefix: list[KeysValues]
    """Keys and values that every word's self-attention sees, (B, H_k, n, d_h): of the words before the image, of the
    prompt before its last word, and of the image where it is a prefix."""
    prefix_mask: Tensor | None
    """(B, 1, 1, n) bool; None when all may be seen."""


class TextAttention(HeadProjections):
    """Scaled dot-product attention with H heads, to one or two lists of keys."""

    def __init__(self, config: TextDecoderConfig, source_width: int | None = None) -> None:
        """Make the projections; ``source_width`` is that of what a cross-attention reads, None for self-attention."""
        shared = config.key_value_heads if source_width is None else None
        super().__init__(config.d_model, config.heads, source_width, key_value_heads=shared, bias=config.bias)
        self.output = nn.Linear(config.d_model, config.d_model, bias=config.bias)
        self.sharing = config.heads // (shared or config.heads)
        """Heads of queries to a head of keys."""

    def project_keys_values(self, x: Tensor, rotation: Tensor | None = None) -> KeysValues:
        """Project ``x`` (B, n, source_width) to keys, which are rotated, and values (B, H_k, n, d_h)."""
        return KeysValues(rotated(self.split_heads(self.key(x)), rotation), self.split_heads(self.value(x)))

    def forward(
        self, x: Tensor, *sources: tuple[KeysValues, Tensor | None], rotation: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend from ``x`` (B, Q, d).

        Args:
            x: what attends.
            sources: one or two pairs of keys and values and their mask, bool, broadcastable to (B, H, Q, K), or None.
                They are not joined: a step of the search would copy an image's keys for each word.
            rotation: of :func:`rotary`, for the queries; None for none.

        Returns:
            (B, Q, d) and the attention weights over the keys of all sources, (B, H, Q, K), or (B, H_k, H / H_k, Q, K)
            where heads share keys.
        """
        queries = rotated(self.scaled_queries(x), rotation)
        if self.sharing > 1:  # a further axis: joined to that of the queries, shapes would depend on K
            queries = queries.unflatten(1, (-1, self.sharing))
        scores = []
        for (keys, _), mask in sources:
            score = queries @ self._shared(keys).transpose(-2, -1)
            scores.append(score if mask is None else score.masked_fill(~self._shared(mask), MASKED_SCORE))
        weights = (torch.cat(scores, dim=-1) if len(scores) > 1 else scores[0]).softmax(dim=-1)
        # The last part has no end: the number of words is not fixed in the graph of a step.
        ends = [*accumulate(keys.shape[2] for (keys, _), _ in sources[:-1]), None]
        parts = [
            weights[..., first:last].to(values.dtype) @ self._shared(values)
            for first, last, ((_, values), _) in zip([0, *ends[:-1]], ends, sources, strict=True)
        ]
        mixed = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return self.output(mixed.movedim(-2, 1).flatten(2)), weights

    def _shared(self, x: Tensor) -> Tensor:
        """Add the axis of the heads that share keys to keys, values or a mask, (B, H_k or 1, ...) or (Q, K)."""
        return x if self.sharing == 1 or x.ndim == 2 else x.unsqueeze(2)


def rotary(positions: Tensor, width: int, base: float) -> Tensor:
    """Compute what rotates heads of a ``width`` (Su et al., 2021) at positions (..., n) int64, as Llama pairs values.

    Returns:
        (2, ..., 1, n, d_h): the cosines, and the sines with the sign that :func:`rotated` needs.
    """
    powers = torch.arange(0, width, 2, device=positions.device).float() / width
    angles = positions.float()[..., None] / base**powers
    sines = angles.sin()
    rotation = torch.stack([angles.cos().tile(2), torch.cat([-sines, sines], dim=-1)])
    return rotation.unsqueeze(-3)


def rotated(x: Tensor, rotation: Tensor | None) -> Tensor:
    """Rotate heads (B, H, n, d_h) by what :func:`rotary` computes; None: not at all."""
    if rotation is None:
        return x
    first, second = x.chunk(2, dim=-1)
    return x * rotation[0].to(x.dtype) + torch.cat([second, first], dim=-1) * rotation[1].to(x.dtype)


class TextLayer(nn.Module):
    """Self-attention, cross-attention where the image is no prefix, feed-forward."""

    def __init__(self, config: TextDecoderConfig, source_width: int = 0) -> None:
        """Make the layer; ``source_width`` is that of the tokens which its cross-attention reads, 0: it has none."""
        super().__init__()
        self.norm_first = config.norm_first
        self.self_attention = TextAttention(config)
        self.self_norm = config.make_norm()
        if source_width:
            self.cross_attention = TextAttention(config, source_width)
            self.cross_norm = config.make_norm()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.bias) if config.gated else None
        self.inner = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.outer = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.feed_forward_norm = config.make_norm()
        self.activation = GATES[config.activation]
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        words: WordCache | None,
        visible: Tensor | None,
        encoded: DecoderContext,
        layer: int,
        rotation: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, WordCache]:
        """Compute the layer for Q words of each image, or for the tokens of a prefix.

        Args:
            x: (B, Q, d).
            words: S slots; None: ``x`` is a prefix, which is not kept in slots.
            visible: bool, broadcastable to (B, H, Q, S + Q), True where one of ``x`` sees a word decoded before or
                another one of ``x``; None: all.
            encoded: what there is of the images.
            layer: index of this layer.
            rotation: of :func:`rotary`, for ``x``; None where positions are learnt.

        Returns:
            (B, Q, d); the weights of the cross-attention, else of the self-attention, the prefix before the words, as
            :class:`TextAttention` returns them; and the keys and values of the words before and of ``x``.
        """
        inputs = converted_for_products(self._before(self.self_norm, x))
        own = self.self_attention.project_keys_values(inputs, rotation)
        after = WordCache(Slots(own.keys), Slots(own.values)) if words is None else words.append(own)
        sources = [(after.all_words(), visible)]
        if encoded.prefix:
            sources.insert(0, (encoded.prefix[layer], encoded.prefix_mask))
        update, weights = self.self_attention(inputs, *sources, rotation=rotation)
        x = self._after(self.self_norm, x, update)
        if encoded.image:
            inputs = self._before(self.cross_norm, x)
            update, weights = self.cross_attention(inputs, (encoded.image[layer], encoded.image_mask))
            x = self._after(self.cross_norm, x, update)
        inputs = converted_for_products(self._before(self.feed_forward_norm, x))
        hidden = self.inner(inputs)
        hidden = self.activation(hidden) if self.gate is None else self.activation(self.gate(inputs)) * hidden
        return self._after(self.feed_forward_norm, x, self.outer(hidden)), weights, after

    def _before(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if self.norm_first else x

    def _after(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        x = x + self.dropout(update)
        return x if self.norm_first else norm(x)


class TextDecoder(ParallelCaptioner):
    """A decoder of described layers; its state is one :class:`WordCache` per layer."""

    Config = TextDecoderConfig
    config: TextDecoderConfig

    def __init__(self, config: TextDecoderConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.token_projection: nn.Module = (
            nn.Linear(config.token_width, d, bias=config.bias) if config.project_tokens else nn.Identity()
        )
        if config.token_epsilon:
            self.token_projection = nn.Sequential(self.token_projection, nn.LayerNorm(d, eps=config.token_epsilon))
        # A parameter of two modules would be stored twice, or refused by safetensors.
        self.word_embedding = None if config.tied else nn.Embedding(config.vocabulary_size, d)
        self.position_embedding = None if config.rotary_base else nn.Embedding(config.max_length, d)
        self.embedding_norm = config.make_norm() if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        source_width = 0 if config.image == "prefix" else d if config.project_tokens else config.token_width
        self.layers = nn.ModuleList(TextLayer(config, source_width) for _ in range(config.layers))
        self.final_norm = config.make_norm() if config.norm_first else nn.Identity()
        if config.transform:
            self.transform = nn.Linear(d, d)
            self.transform_norm = config.make_norm()
        self.word_projection = nn.Linear(d, config.vocabulary_size, bias=config.word_bias)
        self.initialise()

    def initialise(self) -> None:
        """Draw the weights of linear layers and embeddings."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    @property
    def word_table(self) -> Tensor:
        """The embeddings of the words, (V, d)."""
        return (self.word_projection if self.word_embedding is None else self.word_embedding).weight

    @property
    def prompt(self) -> list[int]:
        """Ids of the words between the image and a caption, the begin token among them."""
        return self.config.prompt or [Vocabulary.begin_id]

    @property
    def max_words(self) -> int:
        return self.config.max_length - len(self.config.before_image) - len(self.prompt) + 1

    @property
    def _first_position(self) -> int:
        """Position of the word at which a caption begins. Rotary positions are relative: those before it are negative,
        so that no step depends on the number of visual tokens."""
        return 0 if self.config.rotary_base else len(self.config.before_image) + len(self.prompt) - 1

    def encode(self, visual: Visual) -> DecoderContext:
        tokens = converted_for_products(self.token_projection(visual.tokens))
        mask = None if visual.mask is None else visual.mask[:, None, None]
        if self.config.image == "prefix":
            return self._with_prefix(DecoderContext([], None, [], None), tokens, mask)
        image = [
            layer.cross_attention.project_keys_values(tokens).contiguous()
            for layer in self.layers
            if isinstance(layer, TextLayer)
        ]
        encoded = DecoderContext(image, mask, [], None)
        return encoded if len(self.prompt) == 1 else self._with_prefix(encoded, tokens[:, :0], None)

    def _with_prefix(self, encoded: DecoderContext, tokens: Tensor, mask: Tensor | None) -> DecoderContext:
        """Add what stands before a caption: words, visual tokens (B, N, d), of which ``mask`` (B, 1, 1, N) are real or
        all, and the words of the prompt except the last.
        """
        before, after = len(self.config.before_image), len(self.prompt) - 1
        (batch, count), device = tokens.shape[:2], tokens.device
        # The image is last in memory, where its end is that of the keys. Masks and positions say what comes first.
        ranges = ((0, before), (before + count, before + count + after), (before, before + count))
        place = torch.cat([torch.arange(first, end, device=device) for first, end in ranges])
        x = tokens
        if words := [*self.config.before_image, *self.prompt[:-1]]:
            said = torch.tensor([words], device=device)
            said = self._embed(said, torch.arange(len(words), device=device)).expand(batch, -1, -1)
            x = torch.cat([said, tokens.to(said.dtype)], dim=1) if self.config.image == "prefix" else said
        visible = place <= place[:, None]
        if not self.config.causal_image:
            # Not len(place), an int, which would become a constant of the exported graph.
            is_image = torch.arange(place.shape[0], device=device) >= before + after
            visible = visible | (is_image & is_image[:, None])
        if mask is not None:
            mask = torch.cat([mask.new_ones(1, 1, 1, 1).expand(batch, -1, -1, before + after), mask], dim=3)
            visible = visible & mask
        rotation = None
        if self.config.rotary_base:
            following = place >= place[:, None]
            if mask is not None:
                following = following & mask[:, 0]
            rotation = self._rotation(-following.sum(dim=-1))
        prefix = []
        for number, layer in enumerate(self.layers):
            x, _, cache = layer(x, None, visible, encoded, number, rotation)
            prefix.append(cache.all_words().contiguous())
        return encoded._replace(prefix=prefix, prefix_mask=mask)

    def initial_state(self, encoded: DecoderContext, sequences: int) -> list[WordCache]:
        keys = (encoded.prefix or encoded.image)[0].keys
        heads = self.config.key_value_heads or self.config.heads
        return [WordCache.empty(keys, heads) for _ in self.layers]

    def _embed(self, words: Tensor, positions: Tensor) -> Tensor:
        """Embed words (B, Q) at positions (..., Q), where these are learnt: (B, Q, d)."""
        x = functional.embedding(words, self.word_table)
        if self.position_embedding is not None:
            x = x + self.position_embedding(positions)
        return self.dropout(self.embedding_norm(x))

    def _rotation(self, positions: Tensor) -> Tensor | None:
        """Compute what rotates the heads of words at positions (..., Q); None where positions are learnt."""
        config = self.config
        return rotary(positions, config.d_model // config.heads, config.rotary_base) if config.rotary_base else None

    def decode_words(
        self,
        words: Tensor,
        positions: Tensor,
        visible: Tensor,
        state: list[WordCache],
        encoded: DecoderContext,
        *,
        attention: bool,
    ) -> tuple[Tensor, Tensor | None, list[WordCache]]:
        """Decode words; the prompt's last word takes the place of the begin token, which a caption follows. The
        attention is that of the last layer, averaged over heads.
        """
        if self.prompt != [Vocabulary.begin_id]:
            words = torch.where(positions == 0, self.prompt[-1], words)
        positions = positions + self._first_position
        x, visible, rotation = self._embed(words, positions), visible[:, None], self._rotation(positions)
        caches = []
        for index, layer in enumerate(self.layers):
            x, weights, cache = layer(x, state[index], visible, encoded, index, rotation)
            caches.append(cache)
        logits = self._project(self.final_norm(x))
        return logits, self._image_shares(weights, encoded) if attention else None, caches

    def _project(self, x: Tensor) -> Tensor:
        """Compute the logits (B, Q, V) from the last layer's output (B, Q, d)."""
        if self.config.transform:
            x = self.transform_norm(GATES[self.config.activation](self.transform(x)))
        return self.word_projection(x)

    def _image_shares(self, weights: Tensor, encoded: DecoderContext) -> Tensor:
        """Average the last layer's attention over heads: (B, H, Q, ...) -> (B, Q, N), 1 in sum over the tokens."""
        shares = weights.mean(dim=tuple(range(1, weights.ndim - 2)))
        if self.config.image == "prefix":
            words = len(self.config.before_image) + len(self.prompt) - 1
            shares = shares[..., words : encoded.prefix[-1].keys.shape[2]]
            shares = shares / shares.sum(dim=-1, keepdim=True)
        return shares
