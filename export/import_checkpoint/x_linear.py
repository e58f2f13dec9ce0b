"""Checkpoints of the published X-LAN and X-Transformer (JDAI-CV/image-captioning)."""

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from export.import_checkpoint.published import (
    ImportCheckpointError,
    ImportChoices,
    PublishedModel,
    Source,
    affine,
    count_layers,
    shape_of,
    sized,
)
from export.import_checkpoint.zero_ids import embedding_from_zero, logits_from_zero, vocabulary_from_zero
from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.models.captioner import CaptionerConfig
from training.models.x_lan import XLanConfig
from training.models.x_transformer import XTransformerConfig

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

_Sources = Iterator[Source]


def read_x_lan(state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
    """Map a published X-LAN; a :class:`~export.import_checkpoint.published.PublishedFormat`.

    Raises:
        ImportCheckpointError: a tensor that determines a size is missing, or the words do not fit.
    """
    encoder, decoder, embedding = "encoder_layers.layers", "attention.layers", "word_embed.0.weight"
    vocabulary, order = vocabulary_from_zero(state, embedding, words)
    config = sized(
        XLanConfig,
        **_sizes(state, embedding, f"{encoder}.0.encoder_attn", len(vocabulary), choices),
        encoder_layers=count_layers(state, encoder),
        decoder_layers=count_layers(state, decoder),
    )

    def sources() -> _Sources:
        yield from embedding_from_zero(embedding, "word_embedding.weight", order)
        yield from affine("att_embed.0", "token_projection")
        yield from logits_from_zero("logit", order)
        for i in range(config.encoder_layers):
            yield from _block(f"{encoder}.{i}.encoder_attn", f"encoder.{i}")
        for i in range(config.encoder_layers):
            yield from affine(f"encoder_layers.bifeat_emb.{i}.0", f"region_updates.{i}.linear")
        for i in range(config.encoder_layers):
            yield from affine(f"encoder_layers.layer_norms.{i}", f"region_updates.{i}.norm")
        yield from affine("encoder_layers.proj", "whole_projection")
        yield from affine("encoder_layers.layer_norm", "whole_norm")
        for leaf in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            yield Source(f"lstm.{leaf}", f"att_lstm.{leaf}")
        for i in range(config.decoder_layers):
            yield from _block(f"{decoder}.{i}.encoder_attn", f"decoder.{i}")
        yield from affine("attention.proj", "attended_projection")
        yield from affine("attention.layer_norm", "attended_norm")
        yield from affine("att2ctx.0", "context_projection")

    return _model("x_lan", config, vocabulary, sources(), beam_size=3)


def read_x_transformer(state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
    """Map a published X-Transformer; a :class:`~export.import_checkpoint.published.PublishedFormat`.

    Raises:
        ImportCheckpointError: a tensor that determines a size is missing, or the words do not fit.
    """
    embedding = "decoder.embed_tokens.weight"
    vocabulary, order = vocabulary_from_zero(state, embedding, words)
    config = sized(
        XTransformerConfig,
        **_sizes(state, embedding, "encoder.layers.0.encoder_attn", len(vocabulary), choices),
        d_ff=shape_of(state, "encoder.layers.0.ff_layer.fc1.weight", 2)[0],
        encoder_layers=count_layers(state, "encoder.layers"),
        decoder_layers=count_layers(state, "decoder.layers"),
        max_length=min(_MAX_LENGTH, shape_of(state, "decoder.embed_positions.pe", 3)[1]),
    )

    def sources() -> _Sources:
        yield from affine("att_embed.0", "token_projection")
        yield from affine("att_embed.2", "token_norm")
        for i in range(config.encoder_layers):
            theirs, ours = f"encoder.layers.{i}", f"encoder.{i}"
            yield from _block(f"{theirs}.encoder_attn", f"{ours}.attention")
            yield from _update(theirs, ours, "layer_norm")
        yield from affine("encoder.proj_norm.0", "whole_projection")
        yield from affine("encoder.proj_norm.1", "whole_norm")
        for i in range(config.decoder_layers):
            theirs, ours = f"decoder.layers.{i}", f"decoder.{i}"
            yield from _block(f"{theirs}.word_attn", f"{ours}.self_attention")
            yield from _block(f"{theirs}.cross_att", f"{ours}.cross_attention")
            yield from affine(f"{theirs}.layer_norm_cross", f"{ours}.cross_norm")
            if i < config.decoder_layers - 1:
                yield from _update(theirs, ours, "layer_norm_x")
            yield from affine(f"{theirs}.layer_norm_gx", f"{ours}.norm.norm")
        yield from embedding_from_zero(embedding, "word_embedding.weight", order)
        yield Source("positions", "decoder.embed_positions.pe", lambda table: table[0, : config.max_length])
        yield from affine("decoder.layer_norm_word", "word_norm")
        yield from logits_from_zero("decoder.generator", order)
        for theirs, ours in (("wbil1", "whole_factor"), ("wbil2", "words_factor")):
            yield from affine(f"decoder.{theirs}.0", f"{ours}.linear")
            yield from affine(f"decoder.{theirs}.2", f"{ours}.norm")
        yield from affine("decoder.proj_norm.0", "output_projection")
        yield from affine("decoder.proj_norm.2", "output_norm")

    return _model("x_transformer", config, vocabulary, sources(), beam_size=2)


def _model(
    family: str, config: CaptionerConfig, vocabulary: Vocabulary, sources: _Sources, beam_size: int
) -> PublishedModel:
    return PublishedModel(
        family=family,
        config=config,
        vocabulary=vocabulary,
        sources=tuple(sources),
        forbidden=(Vocabulary.padding_id, Vocabulary.begin_id),
        beam_size=beam_size,
        max_words=17,
        data={"dataset": "coco", "vocabulary": "spaces"},
    )


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


def _block(theirs: str, ours: str) -> _Sources:
    for their_part, our_part in _BLOCK.items():
        if their_part.startswith("in_proj"):
            yield from affine(f"{theirs}.{their_part}.0", f"{ours}.{our_part}.linear")
            yield Source(f"{ours}.{our_part}.scale", f"{theirs}.{their_part}.2.weight")
            yield Source(f"{ours}.{our_part}.shift", f"{theirs}.{their_part}.2.bias")
        else:
            yield from affine(f"{theirs}.{their_part}", f"{ours}.{our_part}")


def _update(theirs: str, ours: str, norm: str) -> _Sources:
    """Map the update of regions or words and the feed-forward of a layer of X-Transformer."""
    yield from affine(f"{theirs}.bifeat_emb.0", f"{ours}.update.linear")
    yield from affine(f"{theirs}.{norm}", f"{ours}.update.norm")
    yield from affine(f"{theirs}.ff_layer.fc1", f"{ours}.feed_forward.inner")
    yield from affine(f"{theirs}.ff_layer.fc2", f"{ours}.feed_forward.outer")
    yield from affine(f"{theirs}.ff_layer.layer_norms", f"{ours}.feed_forward_norm.norm")
