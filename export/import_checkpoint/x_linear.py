"""Checkpoints of the published X-LAN and X-Transformer (JDAI-CV/image-captioning).

In the published vocabulary id 0 is the begin token, the end token and padding at once, and its file begins with id 1.
Here these are three words, which get the embedding of id 0; only the end token keeps its logit.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from torch import Tensor

from export.import_checkpoint.published import (
    ImportCheckpointError,
    ImportChoices,
    PublishedModel,
    PublishedParameter,
    reordered_vocabulary,
    shape_of,
)
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.captioner import CaptionerConfig
from training.models.x_lan import XLanConfig
from training.models.x_transformer import XTransformerConfig

IMPOSSIBLE = -1000.0
"""Logit of a word that is never predicted: its probability is 0 in float32, and float16 can hold it."""

_UNKNOWN = ("UNK", "<UNK>", "<unk>", "unk")
_MAX_LENGTH = 54
"""Rows that are kept of X-Transformer's 5,000 positions."""
_BLOCK = {
    "in_proj_q": "query",
    "in_proj_k": "key",
    "in_proj_v1": "query_value",
    "in_proj_v2": "value",
    "attn_net.attention_basic.0": "hidden",
    "attn_net.attention_last": "spatial",
    "attn_net.attention_last2": "channel",
}

Config = TypeVar("Config", bound=CaptionerConfig)
_Parameters = Iterator[tuple[str, PublishedParameter]]


def read_x_lan(state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
    """Map a published X-LAN; a :class:`~export.import_checkpoint.published.PublishedFormat`.

    Raises:
        ImportCheckpointError: a tensor that the sizes are read off is missing, or the words do not fit.
    """
    encoder, decoder, embedding = "encoder_layers.layers", "attention.layers", "word_embed.0.weight"
    vocabulary, order = _vocabulary(state, embedding, words)
    config = _checked(
        XLanConfig,
        **_sizes(state, embedding, f"{encoder}.0.encoder_attn", len(vocabulary), choices),
        encoder_layers=_layers(state, encoder),
        decoder_layers=_layers(state, decoder),
    )

    def parameters() -> _Parameters:
        yield from _words(embedding, "word_embedding.weight", order)
        yield from _affine("att_embed.0", "token_projection")
        yield from _logits("logit", order)
        for i in range(config.encoder_layers):
            yield from _block(f"{encoder}.{i}.encoder_attn", f"encoder.{i}")
        for i in range(config.encoder_layers):
            yield from _affine(f"encoder_layers.bifeat_emb.{i}.0", f"region_updates.{i}.linear")
        for i in range(config.encoder_layers):
            yield from _affine(f"encoder_layers.layer_norms.{i}", f"region_updates.{i}.norm")
        yield from _affine("encoder_layers.proj", "whole_projection")
        yield from _affine("encoder_layers.layer_norm", "whole_norm")
        for leaf in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            yield f"att_lstm.{leaf}", PublishedParameter(f"lstm.{leaf}")
        for i in range(config.decoder_layers):
            yield from _block(f"{decoder}.{i}.encoder_attn", f"decoder.{i}")
        yield from _affine("attention.proj", "attended_projection")
        yield from _affine("attention.layer_norm", "attended_norm")
        yield from _affine("att2ctx.0", "context_projection")

    return _model("x_lan", config, vocabulary, parameters(), beam_size=3)


def read_x_transformer(state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
    """Map a published X-Transformer; a :class:`~export.import_checkpoint.published.PublishedFormat`.

    Raises:
        ImportCheckpointError: a tensor that the sizes are read off is missing, or the words do not fit.
    """
    embedding = "decoder.embed_tokens.weight"
    vocabulary, order = _vocabulary(state, embedding, words)
    config = _checked(
        XTransformerConfig,
        **_sizes(state, embedding, "encoder.layers.0.encoder_attn", len(vocabulary), choices),
        d_ff=shape_of(state, "encoder.layers.0.ff_layer.fc1.weight", 2)[0],
        encoder_layers=_layers(state, "encoder.layers"),
        decoder_layers=_layers(state, "decoder.layers"),
        max_length=min(_MAX_LENGTH, shape_of(state, "decoder.embed_positions.pe", 3)[1]),
    )

    def parameters() -> _Parameters:
        yield from _affine("att_embed.0", "token_projection")
        yield from _affine("att_embed.2", "token_norm")
        for i in range(config.encoder_layers):
            theirs, ours = f"encoder.layers.{i}", f"encoder.{i}"
            yield from _block(f"{theirs}.encoder_attn", f"{ours}.attention")
            yield from _update(theirs, ours, "layer_norm")
        yield from _affine("encoder.proj_norm.0", "whole_projection")
        yield from _affine("encoder.proj_norm.1", "whole_norm")
        for i in range(config.decoder_layers):
            theirs, ours = f"decoder.layers.{i}", f"decoder.{i}"
            yield from _block(f"{theirs}.word_attn", f"{ours}.self_attention")
            yield from _block(f"{theirs}.cross_att", f"{ours}.cross_attention")
            yield from _affine(f"{theirs}.layer_norm_cross", f"{ours}.cross_norm")
            if i < config.decoder_layers - 1:
                yield from _update(theirs, ours, "layer_norm_x")
            yield from _affine(f"{theirs}.layer_norm_gx", f"{ours}.norm.norm")
        yield from _words(embedding, "word_embedding.weight", order)
        yield (
            "decoder.embed_positions.pe",
            PublishedParameter("positions", lambda table: table[0, : config.max_length]),
        )
        yield from _affine("decoder.layer_norm_word", "word_norm")
        yield from _logits("decoder.generator", order)
        for theirs, ours in (("wbil1", "whole_factor"), ("wbil2", "words_factor")):
            yield from _affine(f"decoder.{theirs}.0", f"{ours}.linear")
            yield from _affine(f"decoder.{theirs}.2", f"{ours}.norm")
        yield from _affine("decoder.proj_norm.0", "output_projection")
        yield from _affine("decoder.proj_norm.2", "output_norm")

    return _model("x_transformer", config, vocabulary, parameters(), beam_size=2)


def _model(
    family: str, config: CaptionerConfig, vocabulary: Vocabulary, parameters: _Parameters, beam_size: int
) -> PublishedModel:
    return PublishedModel(
        family=family,
        config=config,
        vocabulary=vocabulary,
        parameters=dict(parameters),
        forbidden=(Vocabulary.padding_id, Vocabulary.begin_id),
        beam_size=beam_size,
        max_words=17,
        data={"dataset": "coco", "vocabulary": "x_lan"},
    )


def _checked(kind: Callable[..., Config], **sizes: int) -> Config:
    try:
        return kind(**sizes)
    except ValueError as error:
        raise ImportCheckpointError(f"the sizes of the tensors do not fit each other: {error}") from None


def _sizes(
    state: Mapping[str, Tensor], embedding: str, block: str, words: int, choices: ImportChoices
) -> dict[str, int]:
    """Read the sizes that both families have off the words, the regions and a block."""
    if choices.attend_padding:
        raise ImportCheckpointError("--attend-padding is for M2: the published X-LAN masks padded regions")
    d_model, token_width = shape_of(state, embedding, 2)[1], shape_of(state, "att_embed.0.weight", 2)[1]
    attention_units, d_head = shape_of(state, f"{block}.attn_net.attention_basic.0.weight", 2)
    heads = d_model // max(1, d_head)
    if choices.heads not in (None, heads):
        raise ImportCheckpointError(f"{block}.attn_net.attention_basic.0.weight belongs to {heads} heads, not --heads")
    return {
        "vocabulary_size": words,
        "token_width": token_width,
        "d_model": d_model,
        "heads": heads,
        "attention_units": attention_units,
    }


def _layers(state: Mapping[str, Tensor], prefix: str) -> int:
    """Count the layers under a prefix."""
    pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.")
    found = {int(match[1]) for name in state if (match := pattern.match(name))}
    if not found:
        raise ImportCheckpointError(f"lacks {prefix}.0; give a state dict of the format")
    return max(found) + 1


def _vocabulary(state: Mapping[str, Tensor], embedding: str, words: Sequence[str]) -> tuple[Vocabulary, Tensor]:
    """Give the words our order; without a word for unknown ones, ours gets the values of padding.

    Returns:
        The vocabulary, and for each of its words the published id, negative for those that are never predicted.
    """
    count = shape_of(state, embedding, 2)[0]
    if len(words) not in (count - 1, count):
        raise ImportCheckpointError(
            f"{embedding} has {count} words, the vocabulary {len(words)}; it has a word for each id from 1"
        )
    if len(words) == count - 1:
        words = [".", *words]  # named so by the published code
    unknown = next((index for word in _UNKNOWN for index in range(1, count) if words[index] == word), 0)
    vocabulary, order = reordered_vocabulary(words, [0, 0, 0, unknown])
    impossible = [Vocabulary.padding_id, Vocabulary.begin_id] + [Vocabulary.unknown_id] * (not unknown)
    order[impossible] = -1
    return vocabulary, order


def _by_word(value: Tensor, order: Tensor) -> Tensor:
    return value[order.clamp(min=0)]


def _possible(value: Tensor, order: Tensor, otherwise: float) -> Tensor:
    """Order the values of the words' logits; words that are never predicted get ``otherwise``."""
    ordered = _by_word(value, order)
    ordered[order < 0] = otherwise
    return ordered


def _words(theirs: str, ours: str, order: Tensor) -> _Parameters:
    yield theirs, PublishedParameter(ours, partial(_by_word, order=order))


def _logits(theirs: str, order: Tensor) -> _Parameters:
    for leaf, otherwise in (("weight", 0.0), ("bias", IMPOSSIBLE)):
        convert = partial(_possible, order=order, otherwise=otherwise)
        yield f"{theirs}.{leaf}", PublishedParameter(f"word_projection.{leaf}", convert)


def _block(theirs: str, ours: str) -> _Parameters:
    for their_part, our_part in _BLOCK.items():
        if their_part.startswith("in_proj"):
            yield from _affine(f"{theirs}.{their_part}.0", f"{ours}.{our_part}.linear")
            yield f"{theirs}.{their_part}.2.weight", PublishedParameter(f"{ours}.{our_part}.scale")
            yield f"{theirs}.{their_part}.2.bias", PublishedParameter(f"{ours}.{our_part}.shift")
        else:
            yield from _affine(f"{theirs}.{their_part}", f"{ours}.{our_part}")


def _update(theirs: str, ours: str, norm: str) -> _Parameters:
    """Map the update of regions or words and the feed-forward of a layer of X-Transformer."""
    yield from _affine(f"{theirs}.bifeat_emb.0", f"{ours}.update.linear")
    yield from _affine(f"{theirs}.{norm}", f"{ours}.update.norm")
    yield from _affine(f"{theirs}.ff_layer.fc1", f"{ours}.feed_forward.inner")
    yield from _affine(f"{theirs}.ff_layer.fc2", f"{ours}.feed_forward.outer")
    yield from _affine(f"{theirs}.ff_layer.layer_norms", f"{ours}.feed_forward_norm.norm")


def _affine(theirs: str, ours: str) -> _Parameters:
    for leaf in ("weight", "bias"):
        yield f"{theirs}.{leaf}", PublishedParameter(f"{ours}.{leaf}")
