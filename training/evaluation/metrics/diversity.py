"""Diversity of a model's captions: self-BLEU, vocabulary size, caption length."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import precook

from training.evaluation.metrics.coco import ORDERS, bleu_metrics, closest

Ngrams = Counter[tuple[str, ...]]


def self_bleu(captions: Sequence[str]) -> float:
    """Compute BLEU-4 of each caption with all other captions as its references (Zhu et al. 2018).

    The value is 1 when all captions are the same and near 0 when no two share words. It grows with the number of
    captions: compare models on the same images only.

    Args:
        captions: space-joined tokens, one caption per image.

    Raises:
        ValueError: fewer than two captions.
    """
    if len(captions) < 2:
        raise ValueError("self-BLEU needs two captions at least")
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
        rows.append([*correct, *guess, length, closest(others_lengths, length)])
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


def vocabulary_size(captions: Sequence[str]) -> int:
    """Count the distinct words of captions."""
    return len({word for caption in captions for word in caption.split()})


def mean_words(captions: Sequence[str]) -> float:
    """Compute the mean caption length in words."""
    return float(np.mean([len(caption.split()) for caption in captions]))
