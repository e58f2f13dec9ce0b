"""Words that a caption should say once.

A captioner that is not sure what stands beside a sink often says "a sink next to a sink". The search subtracts a
penalty from the log probability of a content word that the beam has said already, in either number, when it chooses
(after Keskar et al. 2019, CTRL, Sec. 4.1, for content words alone and without a change of the probabilities).
"""

from functools import lru_cache

import torch
from torch import Tensor

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from training.data.inflection import singular


def same_words(vocabulary: Vocabulary) -> Tensor:
    """Number the content words of a vocabulary, (V,) int32: words that count as the same have the same number, from 1;
    0 for words that may be repeated.
    A word in several pieces counts as none.
    """
    return torch.tensor(_numbers(vocabulary), dtype=torch.int32)


@lru_cache(maxsize=4)
def _numbers(vocabulary: Vocabulary) -> list[int]:
    # Imported at first use: inflect and spaCy take seconds to load.
    from spacy.lang.en.stop_words import STOP_WORDS

    numbers: dict[str, int] = {}
    groups = [0] * len(vocabulary)
    for index, word in enumerate(vocabulary.words):
        is_word = index >= len(SPECIAL) and not vocabulary.continues(index) and not vocabulary.is_attached(index)
        if is_word and word not in STOP_WORDS:
            groups[index] = numbers.setdefault(singular(word), len(numbers) + 1)
    return groups
