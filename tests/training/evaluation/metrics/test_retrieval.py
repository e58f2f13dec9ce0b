"""R@k by tf-idf against a plain computation from the definition."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.retrieval import RANKS, retrieval


def terms(caption):
    words = caption.split()
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def cosine_of(first, second, idf):
    """Cosine of two captions' tf-idf vectors, over the terms of ``idf``."""
    one, two = ({term: terms(text).count(term) * idf[term] for term in idf} for text in (first, second))
    norms = math.hypot(*one.values()) * math.hypot(*two.values())
    return sum(one[term] * two[term] for term in idf) / norms if norms else 0.0


def expected_recalls(candidates, references):
    """The definition, photograph by photograph: dictionaries and loops in place of sparse matrices."""
    documents = {image: {term for text in texts for term in terms(text)} for image, texts in references.items()}
    seen = set().union(*documents.values())
    idf = {term: math.log(len(documents) / sum(term in found for found in documents.values())) for term in seen}
    recalls = {f"recall_{rank}": [] for rank in RANKS}
    for image, caption in candidates.items():
        nearness = {
            other: max(round(cosine_of(caption, text, idf), 9) for text in texts) for other, texts in references.items()
        }
        nearer = sum(value > nearness[image] for value in nearness.values())
        equal = sum(value == nearness[image] for value in nearness.values())
        for rank in RANKS:
            # The own photograph is at one of `equal` places after the nearer ones, with the same probability at each.
            recalls[f"recall_{rank}"].append(sum(nearer + place < rank for place in range(equal)) / equal)
    return recalls


@given(corpora)
def test_recall_follows_its_definition(corpus):
    candidates, references = split(corpus)
    expected = expected_recalls(candidates, references)
    for metric in retrieval(candidates, references):
        np.testing.assert_allclose(metric.per_image, expected[metric.name], atol=1e-9)
        assert metric.value == pytest.approx(np.mean(expected[metric.name]))
