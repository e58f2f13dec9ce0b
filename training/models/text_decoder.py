"""The Transformer decoders of published captioners: what GIT, BLIP and vision-encoder-decoder models share.

A layer is BERT's (the norm after each addition; Devlin et al., 2019) or GPT-2's (the norm before each part; Radford et
al., 2019). Words see the image by cross-attention, or as a prefix of their self-attention. A family says which of them
it is; :mod:`export.import_checkpoint.text_decoders` reads the published weights.

Shapes: B images, N visual tokens, P words of the prompt before the last, H heads, Q queries, S words decoded before,
d model width, d_h = d / H.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.configs.checks import check_at_least_1, check_one_of, check_positive, check_shares
from training.models.attention import MASKED_SCORE, HeadProjections, ImageCache, WordCache, converted_for_products
from training.models.captioner import (
    Captioner,
    CaptionerConfig,
    PrefixTree,
    Slots,
    Step,
    Visual,
    join_sequences,
    split_sequences,
    visible_slots,
)
from training.models.layers import Dropout, rows_from


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
}
"""Activations by their names in a published config.json."""


@dataclass(frozen=True)
class TextDecoderConfig(CaptionerConfig):
    """Hyper-parameters of every published decoder; the defaults are the sizes of BERT-base."""

    d_model: int = 768
    heads: int = 12
    d_ff: int = 3072
    layers: int = 12
    dropout: float = 0.1
    activation: str = "gelu"
    """A key of :data:`ACTIVATIONS`."""
    epsilon: float = 1e-12
    """Addend of the variance in every LayerNorm of the decoder."""
    max_length: int = 512
    """Longest sequence of words, prompt included, that the position table covers."""
    tied: bool = True
    """Whether the embeddings of the words are the weights of the projection to them."""
    prompt: list[int] = field(default_factory=list)
    """Ids of the words that stand before every caption, the begin token first; empty: the begin token alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_1(self, "d_model", "heads", "d_ff", "layers", "max_length")
        check_shares(self, "dropout")
        check_positive(self, "epsilon")
        check_one_of(self, "activation", ACTIVATIONS)
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if not all(0 <= word < self.vocabulary_size for word in self.prompt):
            raise ValueError(f"prompt must have word ids below {self.vocabulary_size}, not {self.prompt}")
        if len(self.prompt) >= self.max_length:
            raise ValueError(f"prompt has {len(self.prompt)} words, but max_length is {self.max_length}")


class DecoderContext(NamedTuple):
    """Everything that decoding needs of B images; lists have one entry a layer, or none."""

    image: list[ImageCache]
    """Keys and values of the cross-attention; none where the image is a prefix."""
    image_mask: Tensor | None
    """(B, 1, 1, N) bool, True where a token is real; None when all are."""
    prefix: list[ImageCache]
    """Keys and values that every word's self-attention sees, (B, H, N + P, d_h) or (B, H, P, d_h)."""
    prefix_mask: Tensor | None
    """(B, 1, 1, N + P) bool; None when all may be seen."""


class TextAttention(HeadProjections):
    """Scaled dot-product attention with H heads, to one or two lists of keys."""

    def __init__(self, d_model: int, heads: int, source_width: int) -> None:
        super().__init__(d_model, heads, source_width)
        self.output = nn.Linear(d_model, d_model)

    def project_keys_values(self, x: Tensor) -> ImageCache:
        """Project ``x`` (B, n, source_width) to keys and values (B, H, n, d_h)."""
        return ImageCache(self.split_heads(self.key(x)), self.split_heads(self.value(x)))

    def forward(self, x: Tensor, *sources: tuple[ImageCache, Tensor | None]) -> tuple[Tensor, Tensor]:
        """Attend from ``x`` (B, Q, d).

        Args:
            x: what attends.
            sources: one or two pairs of keys and values and their mask, bool, broadcastable to (B, H, Q, K), or None.
                They are not joined: a step of the search would copy an image's keys for each word.

        Returns:
            (B, Q, d) and the attention weights over the keys of all sources, (B, H, Q, K).
        """
        queries = self.scaled_queries(x)
        scores = []
        for (keys, _), mask in sources:
            score = queries @ keys.transpose(-2, -1)
            scores.append(score if mask is None else score.masked_fill(~mask, MASKED_SCORE))
        weights = (torch.cat(scores, dim=-1) if len(scores) > 1 else scores[0]).softmax(dim=-1)
        # The last part has no end: the number of words is not fixed in the graph of a step.
        ends = [*accumulate(keys.shape[2] for (keys, _), _ in sources[:-1]), None]
        parts = [
            weights[..., first:last].to(values.dtype) @ values
            for first, last, ((_, values), _) in zip([0, *ends[:-1]], ends, sources, strict=True)
        ]
        mixed = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return self.output(self.join_heads(mixed)), weights


class TextLayer(nn.Module):
    """Causal self-attention, cross-attention where the image is no prefix, feed-forward."""

    def __init__(self, config: TextDecoderConfig, *, pre_norm: bool, source_width: int) -> None:
        """
        Args:
            config: sizes.
            pre_norm: whether a norm comes before its part of the layer, as in GPT-2, and not after the addition.
            source_width: width of the tokens that the cross-attention reads; 0: no cross-attention.
        """
        super().__init__()
        d_model = config.d_model
        self.pre_norm = pre_norm
        self.self_attention = TextAttention(d_model, config.heads, d_model)
        self.self_norm = nn.LayerNorm(d_model, eps=config.epsilon)
        if source_width:
            self.cross_attention = TextAttention(d_model, config.heads, source_width)
            self.cross_norm = nn.LayerNorm(d_model, eps=config.epsilon)
        self.inner = nn.Linear(d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model, eps=config.epsilon)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, words: WordCache | None, visible: Tensor | None, encoded: DecoderContext, layer: int
    ) -> tuple[Tensor, Tensor, WordCache]:
        """Compute the layer for Q words of each image, or for the tokens of a prefix.

        Args:
            x: (B, Q, d).
            words: S slots; None: ``x`` is a prefix, which is not kept in slots.
            visible: bool, broadcastable to (B, H, Q, S + Q), True where one of ``x`` sees a word decoded before or
                another one of ``x``; None: all.
            encoded: what there is of the images.
            layer: index of this layer.

        Returns:
            (B, Q, d); attention weights (B, H, Q, ...): of the cross-attention, else of the self-attention, the prefix
            before the words; and the keys and values of the words before and of ``x``.
        """
        inputs = converted_for_products(self._before(self.self_norm, x))
        own = self.self_attention.project_keys_values(inputs)
        if words is None:
            after = WordCache(Slots(own.keys), Slots(own.values))
        else:
            after = WordCache(words.keys.append(own.keys, axis=2), words.values.append(own.values, axis=2))
        sources = [(ImageCache(after.keys.values, after.values.values), visible)]
        if encoded.prefix:
            sources.insert(0, (encoded.prefix[layer], encoded.prefix_mask))
        update, weights = self.self_attention(inputs, *sources)
        x = self._after(self.self_norm, x, update)
        if encoded.image:
            inputs = self._before(self.cross_norm, x)
            update, weights = self.cross_attention(inputs, (encoded.image[layer], encoded.image_mask))
            x = self._after(self.cross_norm, x, update)
        hidden = self.activation(self.inner(self._before(self.feed_forward_norm, x)))
        return self._after(self.feed_forward_norm, x, self.outer(hidden)), weights, after

    def _before(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if self.pre_norm else x

    def _after(self, norm: nn.Module, x: Tensor, update: Tensor) -> Tensor:
        x = x + self.dropout(update)
        return x if self.pre_norm else norm(x)


class TextDecoder(Captioner):
    """Base class of the families; its state is one :class:`WordCache` per layer."""

    Config = TextDecoderConfig
    config: TextDecoderConfig

    def __init__(
        self,
        config: TextDecoderConfig,
        *,
        source_width: int,
        pre_norm: bool = False,
        transform: bool = False,
        token_projection: nn.Module | None = None,
    ) -> None:
        """
        Args:
            config: sizes.
            source_width: width of the tokens that cross-attention reads; 0: the tokens are a prefix of the words.
            pre_norm: whether the layers are GPT-2's, not BERT's.
            transform: whether the projection to the words has BERT's layer before it.
            token_projection: layer through which the visual tokens go first; None: none.
        """
        super().__init__(config)
        d = config.d_model
        self.prefix_tokens = source_width == 0
        self.token_projection = token_projection or nn.Identity()
        # A parameter of two modules would be stored twice, or refused by safetensors.
        self.word_embedding = None if config.tied else nn.Embedding(config.vocabulary_size, d)
        self.position_embedding = nn.Embedding(config.max_length, d)
        self.embedding_norm = nn.Identity() if pre_norm else nn.LayerNorm(d, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(
            TextLayer(config, pre_norm=pre_norm, source_width=source_width) for _ in range(config.layers)
        )
        self.final_norm = nn.LayerNorm(d, eps=config.epsilon) if pre_norm else nn.Identity()
        if transform:
            self.transform = nn.Linear(d, d)
            self.transform_norm = nn.LayerNorm(d, eps=config.epsilon)
        self.has_transform = transform
        self.word_projection = nn.Linear(d, config.vocabulary_size, bias=not pre_norm)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    @property
    def prompt(self) -> list[int]:
        """Ids of the words before a caption, the begin token among them."""
        return self.config.prompt or [Vocabulary.begin_id]

    @property
    def max_words(self) -> int:
        return self.config.max_length - len(self.prompt) + 1

    def encode(self, visual: Visual) -> DecoderContext:
        tokens = converted_for_products(self.token_projection(visual.tokens))
        mask = None if visual.mask is None else visual.mask[:, None, None]
        if self.prefix_tokens:
            nothing = DecoderContext([], None, [], None)
            encoded = DecoderContext([], None, self._prefix(tokens, mask, nothing), mask)
        else:
            # Contiguous, because every step of the search multiplies them, and would copy them for it.
            image = [
                ImageCache(*(x.contiguous() for x in layer.cross_attention.project_keys_values(tokens)))
                for layer in self.layers
                if isinstance(layer, TextLayer)
            ]
            encoded = DecoderContext(image, mask, [], None)
        return encoded if len(self.prompt) == 1 else self._with_prompt(encoded, tokens.shape[0])

    def _with_prompt(self, encoded: DecoderContext, batch: int) -> DecoderContext:
        """Append the words of the prompt, except the last, to the prefix of B images."""
        words = torch.tensor(self.prompt[:-1], device=self.position_embedding.weight.device)
        count = len(words)
        causal = torch.ones(count, count, dtype=torch.bool, device=words.device).tril()
        x = self._embed(words[None], self.position_embedding.weight[:count]).expand(batch, -1, -1)
        prompt = self._prefix(x, causal, encoded)
        if not encoded.prefix:
            return encoded._replace(prefix=prompt)
        joined = [
            ImageCache(torch.cat([image.keys, own.keys], dim=2), torch.cat([image.values, own.values], dim=2))
            for image, own in zip(encoded.prefix, prompt, strict=True)
        ]
        mask = encoded.prefix_mask
        if mask is not None:
            mask = torch.cat([mask, mask.new_ones(batch, 1, 1, count)], dim=3)
        return encoded._replace(prefix=joined, prefix_mask=mask)

    def _prefix(self, x: Tensor, visible: Tensor | None, encoded: DecoderContext) -> list[ImageCache]:
        """Compute the keys and values of a prefix (B, n, d) in every layer."""
        caches = []
        for index, layer in enumerate(self.layers):
            x, _, cache = layer(x, None, visible, encoded, index)
            caches.append(ImageCache(cache.keys.values.contiguous(), cache.values.values.contiguous()))
        return caches

    def initial_state(self, encoded: DecoderContext, sequences: int) -> list[WordCache]:
        like = (encoded.image or encoded.prefix)[0].keys
        empty = like.new_zeros(like.shape[0], like.shape[1], 0, like.shape[3])
        return [WordCache(Slots(empty), Slots(empty)) for _ in self.layers]

    def decode(
        self,
        words: Tensor,
        position: Tensor | int,
        past: Tensor,
        state: list[WordCache],
        encoded: DecoderContext,
        *,
        attention: bool = True,
    ) -> Step:
        """Decode the next words; the attention of the step is that of the last layer, averaged over heads."""
        _, group, length = words.shape
        words = self._after_prompt(words, torch.arange(length, device=words.device) + position)
        positions = rows_from(self.position_embedding.weight, position + len(self.prompt) - 1, length)
        logits, weights, caches = self._decode_words(
            join_sequences(words),
            positions if length == 1 else positions.repeat(group, 1),
            visible_slots(past, length),
            state,
            encoded,
            attention=attention,
        )
        shares = None if weights is None else split_sequences(weights, length)
        return Step(split_sequences(logits, length), shares, caches)

    def decode_tree(self, tree: PrefixTree, encoded: DecoderContext) -> Tensor:
        positions = self.position_embedding(tree.positions + len(self.prompt) - 1)
        state = self.initial_state(encoded, 1)
        words = self._after_prompt(tree.words, tree.positions)
        return self._decode_words(words, positions, tree.visible, state, encoded, attention=False)[0]

    def _after_prompt(self, words: Tensor, positions: Tensor) -> Tensor:
        """Put the prompt's last word, which a caption follows, in the place of the begin token at position 0."""
        return words if len(self.prompt) == 1 else torch.where(positions == 0, self.prompt[-1], words)

    def _embed(self, words: Tensor, positions: Tensor) -> Tensor:
        table = self.word_projection if self.word_embedding is None else self.word_embedding
        return self.dropout(self.embedding_norm(functional.embedding(words, table.weight) + positions))

    def _decode_words(
        self,
        words: Tensor,
        positions: Tensor,
        visible: Tensor,
        state: list[WordCache],
        encoded: DecoderContext,
        *,
        attention: bool,
    ) -> tuple[Tensor, Tensor | None, list[WordCache]]:
        """Decode Q words of each image.

        Args:
            words: (B, Q) int64.
            positions: (..., Q, d), their rows of the position table.
            visible: (B, Q, S + Q) bool, True where a word sees one of the S words of the state or of these words.
            state: S slots.
            encoded: the images.
            attention: whether to return attention weights.

        Returns:
            The logits (B, Q, V); the attention on the tokens (B, Q, N), or None; the state with S + Q slots.
        """
        x, visible = self._embed(words, positions), visible[:, None]
        caches = []
        for index, layer in enumerate(self.layers):
            x, weights, cache = layer(x, state[index], visible, encoded, index)
            caches.append(cache)
        logits = self._project(self.final_norm(x))
        return logits, self._image_shares(weights, encoded) if attention else None, caches

    def _project(self, x: Tensor) -> Tensor:
        """Compute the logits (B, Q, V) from the last layer's output (B, Q, d)."""
        if self.has_transform:
            x = self.transform_norm(ACTIVATIONS[self.config.activation](self.transform(x)))
        return self.word_projection(x)

    def _image_shares(self, weights: Tensor, encoded: DecoderContext) -> Tensor:
        """Average the last layer's attention over heads: (B, H, Q, ...) -> (B, Q, N), 1 in sum over the tokens."""
        shares = weights.mean(dim=1)
        if self.prefix_tokens:
            shares = shares[..., : encoded.prefix[-1].keys.shape[2] - len(self.prompt) + 1]
            shares = shares / shares.sum(dim=-1, keepdim=True)
        return shares
