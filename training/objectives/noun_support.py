"""Reward of captions for the objects that they name rightly, and its price for those that are not there.

A caption that names s different objects which the photograph certainly shows, and u which it does not, has the score

    s - 2 u

so that naming an object pays where it is there with a probability of more than two thirds. Background (floor, wall),
which nearly every photograph shows, counts in u alone. Compare CHAIR (Rohrbach et al., EMNLP 2018), whose mentions of
objects are counted alike.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary
from training.data.inflection import singular
from training.data.noun_evidence import DecidedNouns, NounEvidence
from training.evaluation.metrics.chair import DOUBLE_WORDS

PRICE = 2.0
"""What an object that is not there costs, in objects that are."""
_CACHED_CAPTIONS = 100_000
_PAIRS = frozenset(DOUBLE_WORDS)


class NounSupport:
    """Scores captions of the training images by the nouns in them."""

    def __init__(self, evidence: Sequence[NounEvidence | None], vocabulary: Vocabulary) -> None:
        """
        Args:
            evidence: for each training image; None where nothing is known.
            vocabulary: of the captions.
        """
        self._evidence = evidence
        self._words = vocabulary.words
        self._nouns_in = lru_cache(_CACHED_CAPTIONS)(nouns_in)

    def score(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Score k captions for each of B images, (B, k) float64; 0 for images without evidence.

        Args:
            images: (B,) integers, their indices in the training split.
            words: (B, k, T) word ids; a caption ends before its first end token.
        """
        scores = np.zeros(words.shape[:2])
        for row, image in enumerate(images):
            evidence = self._evidence[image]
            if evidence is not None:
                scores[row] = [self._score(evidence, caption) for caption in words[row].tolist()]
        return scores

    def _score(self, evidence: NounEvidence, caption: list[int]) -> float:
        length = caption.index(Vocabulary.end_id) if Vocabulary.end_id in caption else len(caption)
        said = self._nouns_in(tuple(self._words[word] for word in caption[:length]), evidence.decided)
        shown = evidence.decided.objects(said & evidence.shown - evidence.decided.background)
        absent = evidence.decided.objects(said - evidence.shown - evidence.possible)
        return len(shown) - PRICE * len(absent)


def nouns_in(caption: Sequence[str], decided: DecidedNouns) -> frozenset[str]:
    """Find the decided nouns of a caption. Two words that make one noun (dining table) are one, and no other."""
    words = [singular(word) if word.isalpha() else word for word in caption]
    found = set()
    place = 0
    while place < len(words):
        pair = " ".join((caption[place], *words[place + 1 : place + 2]))
        noun = pair if pair in decided.object_of or pair in _PAIRS else words[place]
        if noun in decided.object_of:
            found.add(noun)
        place += 1 + (noun == pair and " " in pair)
    return frozenset(found)
