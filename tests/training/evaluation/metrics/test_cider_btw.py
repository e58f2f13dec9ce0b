"""CIDErBtw against the toolkit's CIDEr with the captions of other images, and its properties."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocoevalcap.cider.cider import Cider

from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.cider_d import cider_btw


def toolkit_cider(caption, references):
    """The toolkit's CIDEr of one caption against the references of each image."""
    with contextlib.redirect_stdout(io.StringIO()):
        _, scores = Cider().compute_score(references, {image: [caption] for image in references})
    return dict(zip(references, scores, strict=True))


@given(corpora, st.data())
def test_it_is_the_toolkits_mean_cider_against_the_references_of_similar_images(corpus, data):
    candidates, references = split(corpus)
    others = {image: [other for other in references if other != image] for image in references}
    similar = {
        image: data.draw(st.lists(st.sampled_from(others[image]), min_size=1, unique=True)) for image in references
    }
    metric = cider_btw(candidates, references, similar)
    expected = [
        np.mean([toolkit_cider(caption, references)[other] for other in similar[image]])
        for image, caption in candidates.items()
    ]
    np.testing.assert_allclose(metric.per_image, expected, rtol=1e-9, atol=1e-12)
    assert metric.value == pytest.approx(np.mean(expected))
