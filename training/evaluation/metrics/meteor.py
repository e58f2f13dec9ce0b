"""METEOR 1.5 by the COCO toolkit's jar; needs Java.

The toolkit exchanges single lines with its METEOR process and hangs when an answer is missing. This module sends all
captions at once and receives the counts of each alignment; the score is computed from the counts by METEOR's formula
(Denkowski and Lavie 2014), so that resampled corpora need no further run of Java.
"""

from collections.abc import Sequence

import numpy as np

from training.evaluation.metrics.java import run_java, toolkit_folder
from training.evaluation.metrics.metric import Captions, Metric, MetricError, References, check_same_images

LIMIT_S, LIMIT_PER_CAPTION_S = 300.0, 0.2
# Parameters of METEOR 1.5 for English: weight of recall, exponent and weight of fragmentation, weight of content words.
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
STAGE_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])
"""Weights of exact, stem, synonym and paraphrase matches."""
COUNTS = 4 + 4 * len(STAGE_WEIGHTS) + 3
"""Numbers per alignment; see :func:`meteor_from_counts`."""


def meteor(models: Sequence[tuple[Captions, References]]) -> list[Metric]:
    """Compute METEOR of several models' captions with one process.
    ``models``: for each model and image a caption, space-joined tokens of the PTB tokeniser, and for each image the
    human captions to compare with, likewise.

    Raises:
        MetricError: there is no Java, or METEOR failed or took too long.
        ValueError: captions and references do not name the same images.
    """
    questions = []
    for candidates, references in models:
        check_same_images(candidates, references)
        questions += [
            " ||| ".join(["SCORE", *map(_clean, references[image]), _clean(caption)])
            for image, caption in candidates.items()
        ]
    answers = run_java(
        "METEOR",
        # METEOR does not find its paraphrases by itself where the path has a space or a letter beyond ASCII.
        ["-Xmx2G", "-jar", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm", "-a", "data/paraphrase-en.gz"],
        toolkit_folder("meteor"),
        questions,
        LIMIT_S + LIMIT_PER_CAPTION_S * len(questions),
    )
    if len(answers) != len(questions):
        raise MetricError(f"METEOR answered {len(answers)} lines to {len(questions)} captions")
    try:
        counts = np.array([[float(number) for number in answer.split()] for answer in answers])
    except ValueError:
        raise MetricError("METEOR answered something else than counts") from None
    if counts.shape != (len(questions), COUNTS):
        raise MetricError(f"METEOR answered counts of the shape {counts.shape}")
    # METEOR counts no chunks where all words of caption and reference match in one chunk.
    whole = (counts[:, -2:] == counts[:, :2]).all(axis=1) & (counts[:, -3] == 1)
    counts[whole, -3] = 0
    return [
        Metric("meteor", part, meteor_from_counts, meteor_from_counts(part)) for part in np.split(counts, len(models))
    ]


def meteor_from_counts(counts: np.ndarray) -> np.ndarray:
    """Compute METEOR from alignment counts, (R, 23) -> (R,).
    ``counts``: the columns are the lengths of caption and reference, the function words in each, then for each of the
    four stages the matched content words of caption and reference and the matched function words of both, then the
    chunks (0 for a caption that equals its reference) and the matched words of caption and reference.
    """
    lengths, functions = counts[:, 0:2], counts[:, 2:4]
    stages = counts[:, 4:-3].reshape(len(counts), len(STAGE_WEIGHTS), 4)
    content, function = stages[:, :, 0:2], stages[:, :, 2:4]
    matched = np.einsum("s,rst->rt", STAGE_WEIGHTS, DELTA * content + (1 - DELTA) * function)
    weighted_lengths = DELTA * (lengths - functions) + (1 - DELTA) * functions
    chunks, matched_words = counts[:, -3], counts[:, -2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = (matched / weighted_lengths).T
        mean = 1 / (ALPHA / recall + (1 - ALPHA) / precision)
        fragmentation = chunks / matched_words.mean(axis=1)
    scores = mean * (1 - GAMMA * fragmentation**BETA)
    return np.where(matched_words.sum(axis=1) > 0, np.nan_to_num(scores), 0.0)


def _clean(caption: str) -> str:
    """Remove the protocol's separator and line ends from a caption."""
    return " ".join(caption.replace("|||", " ").split())
