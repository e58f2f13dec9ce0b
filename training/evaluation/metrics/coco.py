"""BLEU-1..4, ROUGE-L and CIDEr by pycocoevalcap on tokenised captions, without Java."""

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import BleuScorer
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from training.evaluation.metrics.metric import Captions, Metric, References, check_same_images, mean_metric

ORDERS = 4


def score_captions(candidates: Captions, references: References) -> dict[str, float]:
    """Compute corpus scores, fast enough for every epoch of a training run.

    Args:
        candidates: for each image a caption, space-joined tokens.
        references: for each image the human captions, space-joined tokens.

    Returns:
        ``bleu_1`` .. ``bleu_4``, ``rouge_l`` in [0, 1] and ``cider``.

    Raises:
        ValueError: candidates and references do not name the same images.
    """
    return {metric.name: metric.value for metric in coco_metrics(candidates, references)}


def coco_metrics(candidates: Captions, references: References) -> list[Metric]:
    """Compute the scores of :func:`score_captions` with a value for each image.

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
    scorer = BleuScorer(n=ORDERS)
    for image, caption in candidates.items():
        scorer += (caption, list(references[image]))
    counts = np.array(
        [
            [*entry["correct"], *entry["guess"], entry["testlen"], closest(entry["reflen"], entry["testlen"])]
            for entry in scorer.ctest
        ],
        dtype=np.float64,
    )
    return bleu_metrics(counts)


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
