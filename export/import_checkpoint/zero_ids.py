"""Vocabularies of published code in which id 0 is the begin token, the end token and padding at once.

The file of such a vocabulary begins with id 1. Our vocabulary has three words for id 0, all with its embedding; only
the end token keeps its logit.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from torch import Tensor

from export.import_checkpoint.published import (
    ImportCheckpointError,
    Source,
    reordered_vocabulary,
    shape_of,
)
from smart_caption_ros.captioning.vocabulary import Vocabulary

IMPOSSIBLE = -1000.0
"""Logit of a word that is never predicted: its probability is 0 in float32, and float16 can hold it."""

_UNKNOWN = ("UNK", "<UNK>", "<unk>", "unk")


def vocabulary_from_zero(
    state: Mapping[str, Tensor], embedding: str, words: Sequence[str]
) -> tuple[Vocabulary, Tensor]:
    """Put the words in our order; if none stands for unknown words, ours gets the values of padding.

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


def embedding_from_zero(theirs: str, ours: str, order: Tensor) -> Iterator[Source]:
    yield Source(ours, theirs, partial(_by_word, order=order))


def logits_from_zero(theirs: str, order: Tensor) -> Iterator[Source]:
    for leaf, otherwise in (("weight", 0.0), ("bias", IMPOSSIBLE)):
        convert = partial(_possible, order=order, otherwise=otherwise)
        yield Source(f"word_projection.{leaf}", f"{theirs}.{leaf}", convert)
