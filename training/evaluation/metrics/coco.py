"""BLEU-1..4, ROUGE-L and CIDEr by pycocoevalcap on tokenised captions, without Java."""

from collections.abc import Mapping

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from training.evaluation.metrics.metric import Captions, Metric, References, check_same_images, mean_metric

ORDERS = 4
CookedReferences = tuple[list[int], Mapping[tuple[str, ...], int]]
"""Lengths of an image's references, and how often an n-gram occurs in the one that has it most often."""


def coco_metrics(candidates: Captions, references: References) -> list[Metric]:
    """Compute ``bleu_1`` .. ``bleu_4``, ``rouge_l`` in [0, 1] and ``cider``.

    Args:
        candidates: for each image a caption, space-joined tokens.
        references: for each image the human captions, space-joined tokens.

    Raises:
        ValueError: candidates and references do not name the same images.
    """
    check_same_images(candidates, references)
    human = {image: list(references[image]) for image in candidates}
    generated = {image: [caption] for image, caption in candidates.items()}
    _, rouge = Rouge().compute_score(human, generated)
    _, cider = Cider().compute_score(human, generated)
    return [*bleu(candidates, references), mean_metric("rouge_l", rouge), mean_metric("cider", cider)]


def bleu(candidates: Captions, references: References) -> list[Metric]:
    """Compute BLEU-1..4 from the toolkit's counts, so that resampled corpora have corpus scores too."""
    counts = [bleu_counts(caption, cook_refs(references[image], n=ORDERS)) for image, caption in candidates.items()]
    return bleu_metrics(np.array(counts, np.float64))


def bleu_counts(caption: str, references: CookedReferences) -> list[int]:
    """Count what BLEU needs of a caption, a row of :func:`bleu_metrics`.

    Args:
        caption: space-joined tokens.
        references: from the toolkit's ``cook_refs``.
    """
    lengths, _ = references
    counts = cook_test(caption, references, n=ORDERS)
    return [*counts["correct"], *counts["guess"], counts["testlen"], closest(lengths, counts["testlen"])]


def closest(lengths: list[int], length: int) -> int:
    """Choose the reference length that BLEU compares with: the nearest, the shorter of two equally near ones."""
    return min((abs(candidate - length), candidate) for candidate in lengths)[1]


def bleu_metrics(counts: np.ndarray) -> list[Metric]:
    """Build BLEU-1..4 from counts.

    Args:
        counts: (images, 10): matched 1- to 4-grams, all 1- to 4-grams, caption length, reference length.
    """
    per_image = bleu_from_counts(counts)
    return [
        Metric(f"bleu_{n}", counts, lambda sums, n=n: bleu_from_counts(sums)[n - 1], per_image[n - 1])  # type: ignore[misc]
        for n in range(1, ORDERS + 1)
    ]


def bleu_from_counts(counts: np.ndarray) -> np.ndarray:
    """Apply the toolkit's formula, with its two small constants, to sums of counts: (R, 10) -> (4, R)."""
    tiny, small = 1e-15, 1e-9
    correct, guess, (length, reference) = counts[:, :ORDERS], counts[:, ORDERS : 2 * ORDERS], counts[:, -2:].T
    precisions = np.cumprod((correct + tiny) / (guess + small), axis=1) ** (1 / np.arange(1, ORDERS + 1))
    brevity = (length + tiny) / (reference + small)
    penalty = np.exp(np.minimum(0, 1 - 1 / brevity))
    return np.asarray((precisions * penalty[:, None]).T)
