"""Checkpoints of the published M2 code, with its meshed decoder or a plain one (the assembly nearest to SMArT).

With ``attend_padding``, padded regions are not masked, as in the published encoder. A padding word inside a caption is
hidden from the words after it, as in the published decoder; docs/families/m2.md describes both.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from export.import_checkpoint.published import (
    ImportCheckpointError,
    ImportChoices,
    PublishedModel,
    Source,
    affine,
    count_layers,
    reordered_vocabulary,
    shape_of,
)
from training.models.m2 import M2Config
from training.models.smart import SmartConfig

SPECIAL_WORDS = ("<pad>", "<bos>", "<eos>", "<unk>")
PUBLISHED_HEADS = 8
_LINEARS = {"fc_q": "query", "fc_k": "key", "fc_v": "value", "fc_o": "output"}
_STATES = re.compile(r"running_(keys|values|seq|mask_self_attention)$")


def read_m2(state: Mapping[str, Tensor], words: Sequence[str], choices: ImportChoices) -> PublishedModel:
    """Map a published state dict; a :class:`~export.import_checkpoint.published.PublishedFormat`.

    Raises:
        ImportCheckpointError: a tensor that determines a size is missing, or the words do not fit.
    """
    missing = [word for word in SPECIAL_WORDS if word not in words]
    if missing:
        raise ImportCheckpointError(f"the vocabulary lacks {missing[0]}")
    count, d_model = shape_of(state, "decoder.word_emb.weight", 2)
    if count != len(words):
        raise ImportCheckpointError(f"decoder.word_emb.weight has {count} words, the vocabulary {len(words)}")
    vocabulary, order = reordered_vocabulary(words, [words.index(word) for word in SPECIAL_WORDS])
    encoder_layers, decoder_layers = count_layers(state, "encoder.layers"), count_layers(state, "decoder.layers")
    memory = "encoder.layers.0.mhatt.attention.m_k"
    levels = sum(name.startswith("decoder.layers.0.fc_alpha") and name.endswith(".weight") for name in state)
    sizes: dict[str, Any] = {
        "vocabulary_size": count,
        "token_width": shape_of(state, "encoder.fc.weight", 2)[1],
        "d_model": d_model,
        "heads": choices.heads or PUBLISHED_HEADS,
        "d_ff": shape_of(state, "encoder.layers.0.pwff.fc1.weight", 2)[0],
        "encoder_layers": encoder_layers,
        "decoder_layers": decoder_layers,
        "memory_slots": shape_of(state, memory, 3)[1] if memory in state else 0,
        "max_length": shape_of(state, "decoder.pos_emb.weight", 2)[0] - 1,
    }
    parities: dict[str, Any] = {"attend_padding": choices.attend_padding, "mask_padding_words": True}
    sources = _sources(encoder_layers, decoder_layers, bool(sizes["memory_slots"]), levels and encoder_layers, order)
    try:
        config = M2Config(**sizes, **parities) if levels else SmartConfig(**sizes, **parities)
    except ValueError as error:
        raise ImportCheckpointError(f"{error}; give --heads, which a state dict does not say") from None
    return PublishedModel(
        family="m2" if levels else "smart",
        config=config,
        vocabulary=vocabulary,
        sources=tuple(sources),
        ignored=[name for name, value in state.items() if _STATES.search(name) or not value.numel()],
        data={"dataset": "coco", "vocabulary": "spacy"},
    )


def _sources(encoder_layers: int, decoder_layers: int, memory: bool, levels: int, order: Tensor) -> Iterator[Source]:
    """Yield published names and ours in the published order; ``order`` has the published id of each of our words."""

    def by_word(value: Tensor) -> Tensor:
        return value[order]

    for layer in range(encoder_layers):
        theirs, ours = f"encoder.layers.{layer}", f"encoder.{layer}"
        if memory:
            for their_slot, our_slot in (("m_k", "memory_keys"), ("m_v", "memory_values")):
                name = f"{theirs}.mhatt.attention.{their_slot}"
                yield Source(f"{ours}.attention.{our_slot}", name, lambda value: value[0])
        yield from _attention(f"{theirs}.mhatt", f"{ours}.attention", f"{ours}.attention_norm")
        yield from _feed_forward(f"{theirs}.pwff", ours)
    yield from affine("encoder.fc", "token_projection")
    yield from affine("encoder.layer_norm", "token_norm")
    yield Source("word_embedding.weight", "decoder.word_emb.weight", by_word)
    yield Source("positions", "decoder.pos_emb.weight")
    for layer in range(decoder_layers):
        theirs, ours = f"decoder.layers.{layer}", f"decoder.{layer}"
        yield from _attention(f"{theirs}.self_att", f"{ours}.self_attention", f"{ours}.self_norm")
        yield from _attention(f"{theirs}.enc_att", f"{ours}.cross_attention", f"{ours}.cross_norm")
        yield from _feed_forward(f"{theirs}.pwff", ours)
        for level in range(levels):
            yield from affine(f"{theirs}.fc_alpha{level + 1}", f"{ours}.gates.{level}")
    yield Source("word_projection.weight", "decoder.fc.weight", by_word)


def _attention(theirs: str, ours: str, our_norm: str) -> Iterator[Source]:
    for their_linear, our_linear in _LINEARS.items():
        yield from affine(f"{theirs}.attention.{their_linear}", f"{ours}.{our_linear}")
    yield from affine(f"{theirs}.layer_norm", f"{our_norm}.norm")


def _feed_forward(theirs: str, ours: str) -> Iterator[Source]:
    yield from affine(f"{theirs}.fc1", f"{ours}.feed_forward.inner")
    yield from affine(f"{theirs}.fc2", f"{ours}.feed_forward.outer")
    yield from affine(f"{theirs}.layer_norm", f"{ours}.feed_forward_norm.norm")
