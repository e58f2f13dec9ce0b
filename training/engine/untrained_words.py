"""Weights of words of the vocabulary that no training caption has.

Cross-entropy lowers the logit of a word without examples in every context, and its embedding stays as it was drawn. A
guided search (:class:`training.decoding.beam_search.WordGuide`) that raises such a word would say it in the wrong
places, and go on at random. Such a word takes the mean of the weights of related words that were trained: it is
expected where they are, and followed by what follows them. Its logit is the mean of theirs, so that at least one of
them is as likely unless the word is raised.
"""

from collections.abc import Collection

import numpy as np
import torch

from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from smart_caption_ros.grounding import ClassWords, WordVectors
from training.data.inflection import is_plural, singular
from training.models.captioner import Captioner

DONORS = 4
"""Number of related words."""


def untrained_words(vocabulary: Vocabulary, trained: Collection[str]) -> list[str]:
    """Return the words of a vocabulary that are in no training caption."""
    return [word for word in vocabulary.words[len(SPECIAL) :] if word not in trained]


def related_words(word: str, vocabulary: Vocabulary, untrained: Collection[str]) -> list[str]:
    """Find the trained words that are most like a word: names of objects in the same number, by word vectors.

    Words without a vector are related to all names of objects alike.
    """
    vectors, table = WordVectors.load(), ClassWords.load()
    candidates = [
        other
        for other in vocabulary.words[len(SPECIAL) :]
        if other not in untrained and singular(other) in table.classes_of and is_plural(other) == is_plural(word)
    ]
    own = _direction(vectors, word)
    if own is None:
        return candidates
    directions = {name: _direction(vectors, name) for name in candidates}
    found = [(float(own @ other), name) for name, other in directions.items() if other is not None]
    return [name for _, name in sorted(found, reverse=True)[:DONORS]] or candidates


def fill_untrained_words(captioner: Captioner, vocabulary: Vocabulary, untrained: Collection[str]) -> None:
    """Give words without examples the mean weights of related words, in place.

    The weights of a word are its rows of :meth:`training.models.captioner.Captioner.word_tables`.
    """
    weights = dict(captioner.named_parameters())
    tables = [weights[name] for name in captioner.word_tables() if name in weights]
    with torch.no_grad():
        for word in untrained:
            donors = vocabulary.encode(related_words(word, vocabulary, untrained))
            (place,) = vocabulary.encode([word])
            for table in tables if donors else []:
                table[place] = table[donors].mean(dim=0)


def _direction(vectors: WordVectors, word: str) -> np.ndarray | None:
    mean = vectors.mean([word])
    if mean is None:
        mean = vectors.mean([singular(word)])
    return None if mean is None else mean / max(float(np.linalg.norm(mean)), 1e-6)
