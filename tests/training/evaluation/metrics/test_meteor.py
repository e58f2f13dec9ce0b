"""METEOR against the toolkit's class, and failures of its process."""

import numpy as np
import pytest
from pycocoevalcap.meteor.meteor import Meteor

from tests.training.evaluation.metrics.needs_java import fake_java, needs_java
from training.evaluation.metrics.java import meteor
from training.evaluation.metrics.metric import MetricError

REFERENCES = {
    "same": ["a cat sits", "the cat is sitting on a mat"],
    "near": ["a dog runs on the grass", "a brown dog is running"],
    "stem": ["three children played happily in a park", "kids playing"],
    "far": ["two men", "some people"],
}
ONE = {"same": "a cat sits", "near": "a dog runs in grass", "stem": "a child plays in the parks", "far": "blue"}
TWO = {"same": "cat", "near": "a brown dog is running fast", "stem": "children", "far": "two people"}


ODD_REFERENCES = {"separator": ["a ||| dog\nruns"], "silent": ["a cat"], "no words": [""]}
ODD = {"separator": "a dog ||| runs", "silent": "", "no words": "a cat"}


@pytest.fixture(scope="module")
def toolkit_and_ours():
    """The toolkit's METEOR, and our metrics of all captions; both programs load their tables at the same time."""
    toolkit = Meteor()
    return toolkit, meteor([(said | ODD, REFERENCES | ODD_REFERENCES) for said in (ONE, TWO)])


@needs_java
@pytest.mark.long
def test_corpus_and_image_scores_are_the_toolkits_for_every_model(toolkit_and_ours):
    toolkit, metrics = toolkit_and_ours
    for candidates, metric in zip((ONE, TWO), metrics, strict=True):
        value, per_image = toolkit.compute_score(REFERENCES, {image: [text] for image, text in candidates.items()})
        sums = metric.statistics[: len(candidates)].sum(axis=0, keepdims=True)
        assert metric.combine(sums)[0] == pytest.approx(value, abs=1e-6)
        np.testing.assert_allclose(metric.per_image[: len(candidates)], per_image, atol=1e-6)


@needs_java
@pytest.mark.long
def test_captions_with_separators_line_ends_or_no_words_are_scored(toolkit_and_ours):
    for metric in toolkit_and_ours[1]:
        assert metric.per_image[-len(ODD) :].tolist() == pytest.approx([1, 0, 0])


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 1.0", "answered 1 lines to 4 captions"),
        ("for i in 1 2 3 4; do echo oops; done", "something else than counts"),
        ("for i in 1 2 3 4; do echo 1.0 2.0; done", r"counts of the shape \(4, 2\)"),
    ],
)
def test_wrong_answers_are_refused(tmp_path, monkeypatch, script, complaint):
    fake_java(tmp_path, script, monkeypatch)
    with pytest.raises(MetricError, match=complaint):
        meteor([(ONE, REFERENCES)])
