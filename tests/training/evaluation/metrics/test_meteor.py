"""METEOR against the toolkit's own class, and what can go wrong with its process."""

from pathlib import Path

import numpy as np
import pytest
from pycocoevalcap.meteor.meteor import Meteor

from tests.training.evaluation.metrics.needs_java import fake_java, needs_java
from training.evaluation.metrics import meteor as module
from training.evaluation.metrics.java import JavaError
from training.evaluation.metrics.meteor import meteor

REFERENCES = {
    "same": ["a cat sits", "the cat is sitting on a mat"],
    "near": ["a dog runs on the grass", "a brown dog is running"],
    "stem": ["three children played happily in a park", "kids playing"],
    "far": ["two men", "some people"],
}
ONE = {"same": "a cat sits", "near": "a dog runs in grass", "stem": "a child plays in the parks", "far": "blue"}
TWO = {"same": "cat", "near": "a brown dog is running fast", "stem": "children", "far": "two people"}


@needs_java
def test_corpus_and_image_scores_are_the_toolkits_for_every_model() -> None:
    toolkit = Meteor()
    for candidates, metric in zip((ONE, TWO), meteor([ONE, TWO], REFERENCES), strict=True):
        value, per_image = toolkit.compute_score(REFERENCES, {image: [text] for image, text in candidates.items()})
        assert metric.value == pytest.approx(value, abs=1e-6)
        np.testing.assert_allclose(metric.per_image, per_image, atol=1e-6)


@needs_java
def test_separators_line_ends_and_empty_captions_do_no_harm() -> None:
    references = {"a": ["a ||| dog\nruns"], "b": ["a cat"], "c": [""]}
    (metric,) = meteor([{"a": "a dog ||| runs", "b": "", "c": "a cat"}], references)
    assert metric.per_image.tolist() == pytest.approx([1, 0, 0])


def test_a_hanging_process_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "exec sleep 100", monkeypatch)
    monkeypatch.setattr(module, "LIMIT_S", 0.5)
    with pytest.raises(JavaError, match="METEOR was ended"):
        meteor([ONE], REFERENCES)


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 1.0", "answered 1 lines to 4 captions"),
        ("for i in 1 2 3 4; do echo oops; done", "something else than counts"),
        ("for i in 1 2 3 4; do echo 1.0 2.0; done", r"counts of the shape \(4, 2\)"),
    ],
)
def test_wrong_answers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, complaint: str
) -> None:
    fake_java(tmp_path, script, monkeypatch)
    with pytest.raises(JavaError, match=complaint):
        meteor([ONE], REFERENCES)
