"""BLEU-1..4, ROUGE-L and CIDEr of a captioner that is scored on the same images after every epoch of its training.

The values are those of :func:`training.evaluation.metrics.coco.coco_metrics`. The references are indexed once, and the
captions of any of the images can be scored: by each process those that it has found.
"""

import numpy as np
from numpy.typing import NDArray
from pycocoevalcap.bleu.bleu_scorer import cook_refs
from pycocoevalcap.rouge.rouge import Rouge

from training.evaluation.metrics.cider_d import TextCiderD
from training.evaluation.metrics.coco import ORDERS, bleu_counts, bleu_from_counts
from training.evaluation.metrics.metric import Captions, References


class FixedReferences:
    """The human captions of a split, indexed for many comparisons; document frequencies are those of all images."""

    def __init__(self, references: References) -> None:
        """
        Args:
            references: for each image the human captions, space-joined tokens.

        Raises:
            ValueError: there are no images, or an image has no references.
        """
        self._cider = TextCiderD(references)
        self._ngrams = {image: cook_refs(captions, n=ORDERS) for image, captions in references.items()}
        self._subsequences = {
            image: [_Subsequences(each) for each in captions] for image, captions in references.items()
        }

    def statistics(self, captions: Captions) -> NDArray[np.float64]:
        """Compare captions with their references.

        Args:
            captions: for some of the images a caption, space-joined tokens.

        Returns:
            (images, 12), in the order of ``captions``, for :func:`scores_of`; rows of several calls may be joined.
        """
        counts = [bleu_counts(caption, self._ngrams[image]) for image, caption in captions.items()]
        rouge = [_rouge_l(caption, self._subsequences[image]) for image, caption in captions.items()]
        cider = self._cider.score(list(captions.values()), list(captions))
        columns = np.array(counts, np.float64).reshape(len(captions), 2 * ORDERS + 2)
        return np.column_stack([columns, np.array(rouge, np.float64), cider])


def scores_of(statistics: NDArray[np.float64]) -> dict[str, float]:
    """Compute the scores of the images of :meth:`FixedReferences.statistics`.

    Args:
        statistics: (images, 12); the order of the images does not matter.

    Returns:
        ``bleu_1`` .. ``bleu_4``, ``rouge_l`` in [0, 1] and ``cider``.
    """
    bleu = bleu_from_counts(statistics[:, : 2 * ORDERS + 2].sum(axis=0, keepdims=True))[:, 0]
    rouge, cider = statistics[:, -2:].mean(axis=0)
    names = [f"bleu_{n}" for n in range(1, ORDERS + 1)]
    return {**dict(zip(names, bleu.tolist(), strict=True)), "rouge_l": float(rouge), "cider": float(cider)}


class _Subsequences:
    """Longest common subsequences of other captions with one caption, by bit operations (Hyyrö 2004).

    The toolkit's loops over all pairs of words take longer than all other scores.
    """

    def __init__(self, caption: str) -> None:
        words = caption.split(" ")
        self.length = len(words)
        self._all = (1 << len(words)) - 1
        self._places: dict[str, int] = {}
        for place, word in enumerate(words):
            self._places[word] = self._places.get(word, 0) | 1 << place

    def longest(self, words: list[str]) -> int:
        """Return the length of the longest common subsequence."""
        unmatched = self._all
        for word in words:
            matched = unmatched & self._places.get(word, 0)
            unmatched = ((unmatched + matched) | (unmatched - matched)) & self._all
        return self.length - unmatched.bit_count()


def _rouge_l(caption: str, references: list[_Subsequences]) -> float:
    """Compute ROUGE-L by the toolkit's formula: the F-measure of the best precision and the best recall."""
    words = caption.split(" ")
    common = [reference.longest(words) for reference in references]
    precision = max(common) / len(words)
    recall = max(longest / reference.length for longest, reference in zip(common, references, strict=True))
    weight = Rouge().beta ** 2
    return (1 + weight) * precision * recall / (recall + weight * precision) if precision and recall else 0.0
