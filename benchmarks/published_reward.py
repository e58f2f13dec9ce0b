"""CIDEr-D as the published self-critical training computes it: in Python, caption by caption, on text.

Written from a description of M2's code, for comparison with :class:`training.evaluation.metrics.cider_d.CiderD`. The
published training also starts a Java tokeniser for every reward, which is left out here.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary

MAX_N, SIGMA = 4, 6.0

Ngrams = Counter[tuple[str, ...]]
Vector = tuple[list[dict[tuple[str, ...], float]], list[float], int]
"""For each n the weights of the n-grams and their norm, and the length in bigrams."""


class PublishedCiderD:
    """CIDEr-D without an end token; document frequencies are those of the training captions."""

    def __init__(self, captions: Sequence[Sequence[Sequence[str]]], vocabulary: Vocabulary) -> None:
        """
        Args:
            captions: for each training image its captions, as words.
            vocabulary: of the captioner.
        """
        self._words = vocabulary.words
        self._references = [[" ".join(words) for words in group] for group in captions]
        self._documents: Counter[tuple[str, ...]] = Counter()
        for group in self._references:
            self._documents.update({ngram for text in group for ngram in _count_ngrams(text)})
        self._log_images = math.log(len(captions))

    def score(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Score k captions for each of B images.

        Args:
            images: (B,) integers, indices into the captions.
            words: (B, k, T) integers, ids up to and including the end token, then padding.

        Returns:
            (B, k) float64 in [0, 10].
        """
        texts = [[self._decode(caption) for caption in beams] for beams in words.tolist()]
        scores = [
            [self._score(text, self._references[image]) for text in beams]
            for image, beams in zip(images.tolist(), texts, strict=True)
        ]
        return np.array(scores)

    def _decode(self, ids: list[int]) -> str:
        said = []
        for index in ids:
            if index in (Vocabulary.end_id, Vocabulary.padding_id):
                break
            said.append(self._words[index])
        return " ".join(said)

    def _score(self, text: str, references: list[str]) -> float:
        hypothesis = self._weigh(_count_ngrams(text))
        total = sum(_similarity(hypothesis, self._weigh(_count_ngrams(each))) for each in references)
        return 10.0 * total / len(references)

    def _weigh(self, counts: Ngrams) -> Vector:
        weights: list[dict[tuple[str, ...], float]] = [{} for _ in range(MAX_N)]
        squares = [0.0] * MAX_N
        length = 0
        for ngram, count in counts.items():
            place = len(ngram) - 1
            weight = count * (self._log_images - math.log(max(1.0, self._documents[ngram])))
            weights[place][ngram] = weight
            squares[place] += weight**2
            if place == 1:
                length += count
        return weights, [math.sqrt(square) for square in squares], length


def _count_ngrams(text: str) -> Ngrams:
    words = text.split()
    return Counter(tuple(words[start : start + n]) for n in range(1, MAX_N + 1) for start in range(len(words) - n + 1))


def _similarity(hypothesis: Vector, reference: Vector) -> float:
    """Average the clipped cosine over n, with the penalty for a difference in length."""
    penalty = math.exp(-((hypothesis[2] - reference[2]) ** 2) / (2 * SIGMA**2))
    total = 0.0
    for ours, our_norm, theirs, their_norm in zip(*hypothesis[:2], *reference[:2], strict=True):
        product = sum(min(weight, theirs.get(ngram, 0.0)) * theirs.get(ngram, 0.0) for ngram, weight in ours.items())
        if our_norm and their_norm:
            total += product / (our_norm * their_norm)
    return penalty * total / MAX_N
