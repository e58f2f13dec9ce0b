"""CIDEr-D against the toolkit, and with another corpus's document frequencies."""

import numpy as np
import pytest
from hypothesis import given
from pycocoevalcap.cider.cider_scorer import CiderScorer

from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.cider_d import DocumentFrequencies, cider_d


@given(corpora)
def test_with_the_references_own_frequencies_it_is_the_toolkits_cider(corpus: list[tuple[str, list[str]]]) -> None:
    candidates, references = split(corpus)
    scorer = CiderScorer()
    for image, caption in candidates.items():
        scorer += (caption, references[image])
    value, per_image = scorer.compute_score()
    metric = cider_d(candidates, references, DocumentFrequencies.of(references.values()))
    assert metric.value == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(metric.per_image, per_image, atol=1e-9)


class ScorerWithFrequencies(CiderScorer):  # type: ignore[misc]
    """The toolkit's scorer, told its document frequencies and their corpus' size."""

    def tell(self, counts: dict[tuple[str, ...], float], images: int) -> None:
        self.document_frequency.update(counts)
        self.images = images

    @property
    def ref_len(self) -> float | None:
        return float(np.log(self.images)) if hasattr(self, "images") else None

    @ref_len.setter
    def ref_len(self, value: float | None) -> None:
        """It would count the images at hand."""


@given(corpora, corpora)
def test_with_another_corpus_frequencies_it_is_the_toolkits_formula_with_them(
    corpus: list[tuple[str, list[str]]], training: list[tuple[str, list[str]]]
) -> None:
    candidates, references = split(corpus)
    frequencies = DocumentFrequencies.of([captions for _, captions in training])
    scorer = ScorerWithFrequencies()
    scorer.tell(frequencies.counts, frequencies.images)
    for image, caption in candidates.items():
        scorer += (caption, references[image])
    np.testing.assert_allclose(
        cider_d(candidates, references, frequencies).per_image, scorer.compute_cider(), atol=1e-9
    )


def test_document_frequencies_count_images_not_captions() -> None:
    frequencies = DocumentFrequencies.of([["a dog", "a dog runs"], ["a cat"]])
    assert frequencies.images == 2
    assert frequencies.counts[("a",)] == 2
    assert frequencies.counts[("a", "dog")] == 1
    with pytest.raises(ValueError, match="at least one image"):
        DocumentFrequencies.of([])
