"""Words that a caption should say once.

A captioner that is not sure what stands beside a sink often says "a sink next to a sink". The search subtracts a
penalty from the log probability of a content word that the beam has said already, in either number, when it chooses
(after Keskar et al. 2019, CTRL, Sec. 4.1, for content words alone and without a change of the probabilities).
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.inflection import singular


@dataclass(frozen=True, eq=False)
class RepeatPenalty:
    """What repeated content words cost."""

    penalty: float
    """Natural logarithm, subtracted when the search chooses a word; scores of captions do not contain it."""
    groups: Tensor
    """(V,) int32: words that count as the same have the same number, from 1; 0 for words that may be repeated."""

    @classmethod
    def of(cls, vocabulary: Vocabulary, penalty: float) -> "RepeatPenalty | None":
        """Make the penalty of a vocabulary's content words; None for a penalty of 0.

        Raises:
            ValueError: the vocabulary has pieces of words.
        """
        return cls(penalty, torch.tensor(_groups(vocabulary), dtype=torch.int32)) if penalty else None


@lru_cache(maxsize=4)
def _groups(vocabulary: Vocabulary) -> list[int]:
    # Imported at first use: inflect and spaCy take seconds to load.
    from spacy.lang.en.stop_words import STOP_WORDS

    if vocabulary.continuation:
        raise ValueError("repeat_penalty: the vocabulary has pieces of words, which repeat in different words")
    numbers: dict[str, int] = {}
    groups = [0] * len(vocabulary)
    for index, word in enumerate(vocabulary.words):
        if index >= len(SPECIAL) and word not in STOP_WORDS:
            groups[index] = numbers.setdefault(singular(word), len(numbers) + 1)
    return groups
