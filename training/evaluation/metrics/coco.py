"""BLEU-1..4, ROUGE-L and CIDEr of tokenised captions, without Java; the values are those of the COCO toolkit.

BLEU's counts and ROUGE-L are computed by pycocoevalcap, CIDEr by :class:`TextCiderD`. References are indexed once:
during training the captions of the same images are scored after every epoch, by each process those that it has made.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test
from pycocoevalcap.rouge.rouge import Rouge

from training.evaluation.metrics.cider_d import TextCiderD
from training.evaluation.metrics.metric import Captions, Metric, References, mean_metric

ORDERS = 4
CookedReferences = tuple[list[int], Mapping[tuple[str, ...], int]]
"""Lengths of an image's references, and how often an n-gram occurs in the one that has it most often."""


def coco_metrics(candidates: Captions, references: References) -> list[Metric]:
    """Compute ``bleu_1`` .. ``bleu_4``, ``rouge_l`` in [0, 1] and ``cider``.

    Raises:
        ValueError: candidates and references do not name the same images, or none, or an image has no references.
    """
    if candidates.keys() != references.keys():
        raise ValueError("candidates and references must name the same images")
    if not candidates:
        raise ValueError("no image to score")
    for image, captions in references.items():
        if not captions:
            raise ValueError(f"image {image} has no reference")
    return metrics_of(IndexedReferences(references).statistics(candidates))


class IndexedReferences:
    """The human captions of images, indexed for many comparisons; document frequencies are those of all images."""

    def __init__(self, references: References) -> None:
        """Index references as space-joined tokens.

        Raises:
            ValueError: there are no images, or an image has no references.
        """
        self._references = references
        self._cider = TextCiderD(references)
        self._ngrams: dict[str, CookedReferences] = {
            image: cook_refs(captions, n=ORDERS) for image, captions in references.items()
        }
        self._rouge = Rouge()

    def statistics(self, captions: Captions) -> NDArray[np.float64]:
        """Compare captions with their references.
        ``captions``: for some of the images a caption, space-joined tokens.

        Returns:
            (images, 12), in the order of ``captions``, for :func:`metrics_of`: the ten counts of BLEU, ROUGE-L and
            CIDEr. Rows of several calls may be joined.
        """
        counts = [self._bleu_counts(image, caption) for image, caption in captions.items()]
        rouge = [self._rouge.calc_score([caption], self._references[image]) for image, caption in captions.items()]
        cider = self._cider.score(list(captions.values()), list(captions))
        columns = np.array(counts, np.float64).reshape(len(captions), 2 * ORDERS + 2)
        return np.column_stack([columns, np.array(rouge, np.float64), cider])

    def _bleu_counts(self, image: str, caption: str) -> list[int]:
        counts = cook_test(caption, self._ngrams[image], n=ORDERS)
        nearest = nearest_length(self._ngrams[image][0], counts["testlen"])
        return [*counts["correct"], *counts["guess"], counts["testlen"], nearest]


def metrics_of(statistics: NDArray[np.float64]) -> list[Metric]:
    """Build BLEU-1..4, ROUGE-L and CIDEr of the statistics (images, 12) of :class:`IndexedReferences`."""
    rouge, cider = statistics[:, -2:].T
    return [*bleu_metrics(statistics[:, :-2]), mean_metric("rouge_l", rouge), mean_metric("cider", cider)]


def nearest_length(lengths: list[int], length: int) -> int:
    """Choose the reference length that BLEU compares with: the nearest, the shorter of two equally near ones."""
    return min((abs(candidate - length), candidate) for candidate in lengths)[1]


def bleu_metrics(counts: NDArray[np.float64]) -> list[Metric]:
    """Build BLEU-1..4 from counts, so that resampled corpora have corpus scores too.
    ``counts``: (images, 10): matched 1- to 4-grams, all 1- to 4-grams, caption length, reference length.
    """
    per_image = _bleu_of_sums(counts)
    return [
        Metric(f"bleu_{n}", counts, lambda sums, n=n: _bleu_of_sums(sums)[n - 1], per_image[n - 1])  # type: ignore[misc]
        for n in range(1, ORDERS + 1)
    ]


def _bleu_of_sums(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply the toolkit's formula, with its two small constants, to sums of counts: (R, 10) -> (4, R)."""
    tiny, small = 1e-15, 1e-9
    correct, guess, (length, reference) = counts[:, :ORDERS], counts[:, ORDERS : 2 * ORDERS], counts[:, -2:].T
    precisions = np.cumprod((correct + tiny) / (guess + small), axis=1) ** (1 / np.arange(1, ORDERS + 1))
    brevity = (length + tiny) / (reference + small)
    penalty = np.exp(np.minimum(0, 1 - 1 / brevity))
    return np.asarray((precisions * penalty[:, None]).T)
