"""Retrieval of a caption's own photograph by its words: whether the caption tells one photograph from the others.

A sentence is a vector of tf-idf over its words and pairs of adjacent words: how often the term occurs in it, times
ln(N / number of the N photographs with the term in one of their human captions). A photograph is as near to a caption
as the nearest of its human captions, by the cosine. No trained model is involved.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from training.evaluation.metrics.metric import Captions, Metric, References, mean_metric

RANKS = (1, 5)
"""Numbers of nearest photographs that the caption's own one may be among."""
_BATCH = 500
"""Captions compared at a time: bounds the memory of large evaluations."""
_DIGITS = 9
"""Decimals of a cosine; equal sentences have equal cosines whatever the order of summation."""


def retrieval(candidates: Captions, references: References) -> list[Metric]:
    """Compute R@1 and R@5, the shares of captions whose own photograph is the nearest, or among the five nearest.

    Photographs that are equally near are in random order: the value of a caption is the probability that its own one
    is among the nearest. So captions that are all the same have R@k = k / N.

    Returns:
        ``recall_1`` and ``recall_5``, in [0, 1], higher is better; comparable for the same photographs only.
    """
    images = list(candidates)
    documents = [[Counter(_terms(caption)) for caption in references[image]] for image in images]
    frequencies = Counter(term for document in documents for term in set().union(*document))
    columns = {term: column for column, term in enumerate(frequencies)}
    weights = np.log(len(images) / np.array(list(frequencies.values()), dtype=np.float64))
    queries = _vectors([Counter(_terms(candidates[image])) for image in images], columns, weights)
    sentences = _vectors([sentence for document in documents for sentence in document], columns, weights)
    counts = np.array([len(document) for document in documents])
    first = np.cumsum(counts) - counts
    chances = []
    for start in range(0, len(images), _BATCH):
        cosines = (queries[start : start + _BATCH] @ sentences.T).toarray().round(_DIGITS)
        nearness = np.maximum.reduceat(cosines, first, axis=1)
        own = nearness[np.arange(len(nearness)), np.arange(start, start + len(nearness))][:, None]
        nearer, equal = (nearness > own).sum(axis=1), (nearness == own).sum(axis=1)
        chances.append([np.clip((rank - nearer) / equal, 0, 1) for rank in RANKS])
    return [
        mean_metric(f"recall_{rank}", values)
        for rank, values in zip(RANKS, np.concatenate(chances, axis=1), strict=True)
    ]


def _terms(caption: str) -> Iterator[tuple[str, ...]]:
    words = caption.split()
    yield from ((word,) for word in words)
    yield from pairwise(words)


def _vectors(
    sentences: Sequence[Mapping[tuple[str, ...], int]],
    columns: Mapping[tuple[str, ...], int],
    weights: NDArray[np.float64],
) -> csr_array:
    """Build unit vectors, (sentences, terms) float64; terms without a column are left out."""
    known = [
        (row, columns[term], count)
        for row, sentence in enumerate(sentences)
        for term, count in sentence.items()
        if term in columns
    ]
    rows, places, counts = np.array(known, dtype=np.int64).reshape(-1, 3).T
    values = counts * weights[places]
    norms = np.sqrt(np.bincount(rows, values**2, minlength=len(sentences)))
    scaled = np.divide(values, norms[rows], out=np.zeros_like(values), where=norms[rows] > 0)
    return csr_array((scaled, (rows, places)), shape=(len(sentences), len(columns)))
