"""Scores against references that are indexed once equal those of the toolkit's classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.coco import coco_metrics
from training.evaluation.metrics.fixed_references import FixedReferences, scores_of


@given(corpora)
def test_scores_are_those_of_the_toolkit(corpus: list[tuple[str, list[str]]]) -> None:
    candidates, references = split(corpus)
    expected = {metric.name: metric.value for metric in coco_metrics(candidates, references)}
    found = scores_of(FixedReferences(references).statistics(candidates))
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(corpora, st.integers(1, 4), st.randoms())
def test_captions_may_be_compared_in_parts_and_in_any_order(
    corpus: list[tuple[str, list[str]]], parts: int, random: object
) -> None:
    candidates, references = split(corpus)
    fixed = FixedReferences(references)
    images = list(candidates)
    random.shuffle(images)  # type: ignore[attr-defined]
    rows = [fixed.statistics({image: candidates[image] for image in images[part::parts]}) for part in range(parts)]
    found = scores_of(np.concatenate(rows))
    assert found == pytest.approx(scores_of(fixed.statistics(candidates)), rel=1e-9, abs=1e-12)


def test_a_part_of_the_images_has_the_document_frequencies_of_all() -> None:
    candidates, references = split(
        [("a dog runs", ["the dog runs", "a dog"]), ("a cat", ["a red cat"]), ("the", ["a"])]
    )
    whole = coco_metrics(candidates, references)[-1].per_image
    fixed = FixedReferences(references)
    for image, expected in zip(candidates, whole, strict=True):
        found = scores_of(fixed.statistics({image: candidates[image]}))
        assert found["cider"] == pytest.approx(expected)


def test_an_empty_caption_has_the_scores_of_the_toolkit() -> None:
    candidates, references = split([("", ["a dog"]), ("a cat", ["a red cat"])])
    expected = {metric.name: metric.value for metric in coco_metrics(candidates, references)}
    assert scores_of(FixedReferences(references).statistics(candidates)) == pytest.approx(expected)


def test_an_image_without_references_is_refused() -> None:
    with pytest.raises(ValueError, match="image 1 of the references has no captions"):
        FixedReferences({"a": ["a dog"], "b": []})
