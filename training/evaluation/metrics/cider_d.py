"""CIDEr-D (Vedantam et al. 2015) with the document frequencies of any corpus.

The toolkit's "CIDEr" is this metric with the document frequencies of the very references that are scored, which
makes its value depend on which images these are. Self-critical training rewards CIDEr-D with the document
frequencies of the training captions; the same number on the captions of an evaluation is comparable between splits.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from training.evaluation.metrics.metric import Captions, Metric, References, check_same_images, mean_metric

ORDERS = 4
SIGMA = 6.0
"""Words: how soon a caption longer or shorter than the reference loses."""

Ngrams = Counter[tuple[str, ...]]


def count_ngrams(caption: str) -> Ngrams:
    """1- to 4-grams of a caption of space-joined tokens."""
    words = caption.split()
    return Counter(tuple(words[i : i + n]) for n in range(1, ORDERS + 1) for i in range(len(words) - n + 1))


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many images' captions each n-gram occurs, and how many images there are."""

    counts: Counter[tuple[str, ...]]
    images: int

    @classmethod
    def of(cls, references: Iterable[Sequence[str]]) -> "DocumentFrequencies":
        """Count over the captions, space-joined tokens, of every image of a corpus.

        Raises:
            ValueError: the corpus is empty.
        """
        counts: Counter[tuple[str, ...]] = Counter()
        images = 0
        for captions in references:
            counts.update({ngram for caption in captions for ngram in count_ngrams(caption)})
            images += 1
        if not images:
            raise ValueError("document frequencies need at least one image with captions")
        return cls(counts, images)

    def weigh(self, ngrams: Ngrams) -> "_Weighed":
        """tf-idf of n-grams."""
        log_images = math.log(self.images)
        weights = {
            ngram: count * (log_images - math.log(max(1, self.counts[ngram]))) for ngram, count in ngrams.items()
        }
        squares = [0.0] * ORDERS
        for ngram, weight in weights.items():
            squares[len(ngram) - 1] += weight**2
        # The toolkit takes the number of bigrams for the length; only differences of lengths matter.
        length = sum(count for ngram, count in ngrams.items() if len(ngram) == 2)
        return _Weighed(weights, [math.sqrt(square) for square in squares], length)


@dataclass(frozen=True)
class _Weighed:
    weights: dict[tuple[str, ...], float]
    norms: list[float]
    length: int

    def similarity(self, reference: "_Weighed") -> float:
        products = [0.0] * ORDERS
        for ngram, weight in self.weights.items():
            if other := reference.weights.get(ngram):
                products[len(ngram) - 1] += min(weight, other) * other
        cosines = sum(
            product / (norm * other) if norm and other else product
            for product, norm, other in zip(products, self.norms, reference.norms, strict=True)
        )
        return cosines / ORDERS * math.exp(-((self.length - reference.length) ** 2) / (2 * SIGMA**2))


def cider_d(candidates: Captions, references: References, frequencies: DocumentFrequencies) -> Metric:
    """CIDEr-D; equal to the toolkit's CIDEr where the frequencies are those of ``references``.

    Args:
        candidates: a caption of space-joined tokens for each image.
        references: the human captions of the same images, likewise.
        frequencies: counted with the same tokeniser.

    Raises:
        ValueError: the two do not name the same images.
    """
    check_same_images(candidates, references)
    values = []
    for image, caption in candidates.items():
        weighed = frequencies.weigh(count_ngrams(caption))
        similarities = [
            weighed.similarity(frequencies.weigh(count_ngrams(reference))) for reference in references[image]
        ]
        values.append(10 * float(np.mean(similarities)))
    return mean_metric("cider_d", values)
