"""How much a model's captions differ from each other: self-BLEU, vocabulary size, caption length."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from training.evaluation.metrics.cider_d import Ngrams, count_ngrams
from training.evaluation.metrics.coco import ORDERS, bleu_metrics, closest


def self_bleu(captions: Sequence[str]) -> float:
    """BLEU-4 of the captions, each against all the others as its references (Zhu et al. 2018).

    1 when all captions are the same, near 0 when no two share words. It grows with the number of captions: compare
    it between models on the same images alone.

    Args:
        captions: space-joined tokens, one caption an image.

    Raises:
        ValueError: fewer than two captions.
    """
    if len(captions) < 2:
        raise ValueError("self-BLEU needs two captions at least")
    ngrams = [count_ngrams(caption) for caption in captions]
    most, second = _two_highest_counts(ngrams)
    lengths = Counter(len(caption.split()) for caption in captions)
    rows = []
    for counts, caption in zip(ngrams, captions, strict=True):
        correct, guess = [0] * ORDERS, [0] * ORDERS
        for ngram, count in counts.items():
            # The most that any other caption has of it: where this one has the most, the runner-up's.
            others = second[ngram] if count == most[ngram] else most[ngram]
            correct[len(ngram) - 1] += min(count, others)
            guess[len(ngram) - 1] += count
        length = len(caption.split())
        others_lengths = [other for other, number in lengths.items() if number > (other == length)]
        rows.append([*correct, *guess, length, closest(others_lengths, length)])
    return bleu_metrics(np.array(rows, dtype=np.float64))[-1].value


def _two_highest_counts(captions: Sequence[Ngrams]) -> tuple[Ngrams, Ngrams]:
    most: Ngrams = Counter()
    second: Ngrams = Counter()
    for counts in captions:
        for ngram, count in counts.items():
            if count > most[ngram]:
                most[ngram], second[ngram] = count, most[ngram]
            elif count > second[ngram]:
                second[ngram] = count
    return most, second


def vocabulary_size(captions: Sequence[str]) -> int:
    """Distinct words."""
    return len({word for caption in captions for word in caption.split()})


def mean_words(captions: Sequence[str]) -> float:
    """Mean length of a caption, words."""
    return float(np.mean([len(caption.split()) for caption in captions]))
