"""Checkpoints of the published Object Relation Transformer (yahoo/object_relation_transformer).

The published normalisation divides by the unbiased standard deviation, torch's by the biased one: the ratio of the two
goes into the factors of the normalisation. The published positions begin at 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch
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
from training.models.object_relation import GEOMETRY_WIDTH, ObjectRelationConfig

_EMBEDDING = "model.tgt_embed.0.lut.weight"
_MAX_LENGTH = 54
"""Rows that are kept of 5,000 positions."""
_LINEARS = ("query", "key", "value", "output")

_Sources = Iterator[Source]


def read_object_relation(state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
    """Map a published Object Relation Transformer; a :class:`~export.import_checkpoint.published.PublishedFormat`.

    Raises:
        ImportCheckpointError: a tensor that determines a size is missing, or the words do not fit.
    """
    if choices.attend_padding:
        raise ImportCheckpointError("--attend-padding is for M2: the published code masks padded regions")
    vocabulary, order = vocabulary_from_zero(state, _EMBEDDING, words)
    heads = count_layers(state, "model.encoder.layers.0.self_attn.WGs")
    if choices.heads not in (None, heads):
        raise ImportCheckpointError(f"the encoder has geometric weights of {heads} heads, not of --heads")
    config = sized(
        ObjectRelationConfig,
        vocabulary_size=len(vocabulary),
        token_width=shape_of(state, "att_embed.0.weight", 2)[1],
        d_model=shape_of(state, _EMBEDDING, 2)[1],
        heads=heads,
        d_ff=shape_of(state, "model.encoder.layers.0.feed_forward.w_1.weight", 2)[0],
        encoder_layers=count_layers(state, "model.encoder.layers"),
        decoder_layers=count_layers(state, "model.decoder.layers"),
        max_length=min(_MAX_LENGTH, shape_of(state, "model.tgt_embed.1.pe", 3)[1]),
        legacy_extra_skip=choices.legacy_extra_skip,
    )
    return PublishedModel(
        family="object_relation",
        config=config,
        vocabulary=vocabulary,
        sources=tuple(_sources(config, order)),
        forbidden=(Vocabulary.padding_id, Vocabulary.begin_id),
        max_words=17,
        data={"dataset": "coco", "vocabulary": "spaces"},
    )


def _sources(config: ObjectRelationConfig, order: Tensor) -> _Sources:
    """Yield published names and ours; ``order`` as :func:`vocabulary_from_zero` returns it."""
    yield from affine("att_embed.0", "token_projection")
    for layer in range(config.encoder_layers):
        theirs, ours = f"model.encoder.layers.{layer}", f"encoder.{layer}"
        yield from _attention(f"{theirs}.self_attn", f"{ours}.attention")
        for head in range(config.heads):
            for leaf, shape in (("weight", (GEOMETRY_WIDTH,)), ("bias", ())):
                name = f"{theirs}.self_attn.WGs.{head}.{leaf}"
                yield Source(f"{ours}.geometry.{leaf}", name, partial(torch.reshape, shape=shape), row=head)
        yield from _feed_forward(theirs, ours)
        yield from _norm(f"{theirs}.sublayer.0.norm", f"{ours}.attention_norm.norm")
        yield from _norm(f"{theirs}.sublayer.1.norm", f"{ours}.feed_forward_norm.norm")
    yield from _norm("model.encoder.norm", "encoder_norm")
    for layer in range(config.decoder_layers):
        theirs, ours = f"model.decoder.layers.{layer}", f"decoder.{layer}"
        yield from _attention(f"{theirs}.self_attn", f"{ours}.self_attention")
        yield from _attention(f"{theirs}.src_attn", f"{ours}.cross_attention")
        yield from _feed_forward(theirs, ours)
        for place, norm in enumerate(("self_norm", "cross_norm", "feed_forward_norm")):
            yield from _norm(f"{theirs}.sublayer.{place}.norm", f"{ours}.{norm}.norm")
    yield from _norm("model.decoder.norm", "decoder_norm")
    yield from embedding_from_zero(_EMBEDDING, "word_embedding.weight", order)

    def positions(table: Tensor) -> Tensor:
        # Row 0 is not read.
        return torch.cat([torch.zeros_like(table[0, :1]), table[0, : config.max_length]])

    yield Source("positions", "model.tgt_embed.1.pe", positions)
    yield from logits_from_zero("model.generator.proj", order)


def _attention(theirs: str, ours: str) -> _Sources:
    for place, linear in enumerate(_LINEARS):
        yield from affine(f"{theirs}.linears.{place}", f"{ours}.{linear}")


def _feed_forward(theirs: str, ours: str) -> _Sources:
    yield from affine(f"{theirs}.feed_forward.w_1", f"{ours}.feed_forward.inner")
    yield from affine(f"{theirs}.feed_forward.w_2", f"{ours}.feed_forward.outer")


def _norm(theirs: str, ours: str) -> _Sources:
    def of_biased_deviation(factors: Tensor) -> Tensor:
        count = factors.numel()
        return factors * ((count - 1) / count) ** 0.5

    yield Source(f"{ours}.weight", f"{theirs}.a_2", of_biased_deviation)
    yield Source(f"{ours}.bias", f"{theirs}.b_2")
