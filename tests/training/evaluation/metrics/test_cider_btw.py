"""CIDErBtw against the toolkit's CIDEr with the captions of other images, and its properties."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocoevalcap.cider.cider import Cider

from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.cider_btw import cider_btw
from training.evaluation.metrics.coco import coco_metrics


def toolkit_cider(caption: str, references: dict[str, list[str]]) -> dict[str, float]:
    """The toolkit's CIDEr of one caption against the references of each image."""
    with contextlib.redirect_stdout(io.StringIO()):
        _, scores = Cider().compute_score(references, {image: [caption] for image in references})
    return dict(zip(references, scores, strict=True))


@given(corpora, st.data())
def test_it_is_the_toolkits_mean_cider_against_the_references_of_similar_images(
    corpus: list[tuple[str, list[str]]], data: st.DataObject
) -> None:
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


def test_a_caption_of_another_image_has_a_higher_value_than_one_of_its_own() -> None:
    references = {
        "kitchen": ["a kitchen with a stove", "a kitchen and a red kettle"],
        "other kitchen": ["a kitchen with a table", "a kitchen with six chairs"],
        "beach": ["a dog on the beach", "a dog runs"],
    }
    similar = {"kitchen": ["other kitchen"], "other kitchen": ["kitchen"], "beach": ["kitchen", "other kitchen"]}
    candidates = {"kitchen": "a kitchen with a table", "other kitchen": "six chairs", "beach": "a dog runs"}
    kitchen, other, beach = cider_btw(candidates, references, similar).per_image
    assert kitchen > other == pytest.approx(0)
    assert beach == pytest.approx(0)


def test_it_is_cider_where_the_only_similar_image_has_the_same_references() -> None:
    references = {"1": ["a dog runs", "the dog"], "2": ["a dog runs", "the dog"], "3": ["a cat", "the cat sits"]}
    candidates = {"1": "a dog", "2": "the dog runs", "3": "a cat"}
    metric = cider_btw(candidates, references, {"1": ["2"], "2": ["1"], "3": ["1"]})
    (cider,) = (found for found in coco_metrics(candidates, references) if found.name == "cider")
    np.testing.assert_allclose(metric.per_image[:2], cider.per_image[:2])


def test_an_image_without_similar_ones_has_no_value_and_does_not_count() -> None:
    references = {"1": ["a dog"], "2": ["a red dog"], "3": ["a cat"]}
    candidates = {"1": "a red dog", "2": "a dog", "3": "a dog"}
    metric = cider_btw(candidates, references, {"1": ["2"], "2": [], "3": ["1"]})
    assert np.isnan(metric.per_image[1])
    assert metric.value == pytest.approx(np.nanmean(metric.per_image))
    nothing = cider_btw(candidates, references, {"1": [], "2": [], "3": []})
    assert np.isnan(nothing.value)
