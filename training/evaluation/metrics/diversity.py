"""Diversity of a model's captions: different ones, words, the commonest, runs, lengths, self-BLEU."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import precook

from training.evaluation.metrics.coco import ORDERS, bleu_metrics, nearest_length

Ngrams = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Diversity:
    """Counts over all captions of a model. They grow with the number of captions: compare them on the same images."""

    captions: int
    """Number of captions."""
    different: int
    """Number of different captions."""
    vocabulary_size: int
    """Number of different words."""
    commonest: str
    """The commonest caption, space-joined tokens; of several the first."""
    commonest_count: int
    """Number of images with the commonest caption."""
    longest_run: int
    """Largest number of consecutive images with the same caption; says something of frames in order alone."""
    mean_words: float
    """Mean caption length in words."""
    self_bleu: float | None
    """See :func:`self_bleu`; None for a single caption."""

    @classmethod
    def of(cls, captions: Sequence[str]) -> "Diversity":
        """Measure captions: space-joined tokens, one caption per image, at least one."""
        words = [caption.split() for caption in captions]
        commonest, commonest_count = Counter(captions).most_common(1)[0]
        return cls(
            captions=len(captions),
            different=len(set(captions)),
            vocabulary_size=len({word for caption in words for word in caption}),
            commonest=commonest,
            commonest_count=commonest_count,
            longest_run=max(len(list(run)) for _, run in groupby(captions)),
            mean_words=float(np.mean([len(caption) for caption in words])),
            self_bleu=self_bleu(captions) if len(captions) > 1 else None,
        )


def self_bleu(captions: Sequence[str]) -> float:
    """Compute BLEU-4 of each caption with all other captions as its references (Zhu et al. 2018).

    The value is 1 when all captions are the same and near 0 when no two share words. It grows with the number of
    captions: compare models on the same images only.
    ``captions``: space-joined tokens, one caption per image, at least two.
    """
    counted: list[tuple[int, Mapping[tuple[str, ...], int]]] = [precook(caption, ORDERS) for caption in captions]
    most, second = _two_highest_counts([ngrams for _, ngrams in counted])
    lengths = Counter(length for length, _ in counted)
    rows = []
    for length, ngrams in counted:
        correct, guess = [0] * ORDERS, [0] * ORDERS
        for ngram, count in ngrams.items():
            # The highest count in any other caption: the second highest where this caption has the highest.
            others = second[ngram] if count == most[ngram] else most[ngram]
            correct[len(ngram) - 1] += min(count, others)
            guess[len(ngram) - 1] += count
        others_lengths = [other for other, number in lengths.items() if number > (other == length)]
        rows.append([*correct, *guess, length, nearest_length(others_lengths, length)])
    return bleu_metrics(np.array(rows, dtype=np.float64))[-1].value


def _two_highest_counts(captions: Sequence[Mapping[tuple[str, ...], int]]) -> tuple[Ngrams, Ngrams]:
    """Find the highest and the second highest count of each n-gram in a caption; equal when two captions tie."""
    most: Ngrams = Counter()
    second: Ngrams = Counter()
    for ngrams in captions:
        for ngram, count in ngrams.items():
            if count > most[ngram]:
                most[ngram], second[ngram] = count, most[ngram]
            elif count > second[ngram]:
                second[ngram] = count
    return most, second
