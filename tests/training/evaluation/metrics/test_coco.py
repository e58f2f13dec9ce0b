"""BLEU, ROUGE-L and CIDEr against the toolkit's own classes."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from tests.training.evaluation.metrics.corpora import corpora, split
from training.evaluation.metrics.coco import coco_metrics


@given(corpora)
def test_scores_are_the_toolkits_for_the_corpus_and_for_each_image(corpus):
    candidates, references = split(corpus)
    generated = {image: [caption] for image, caption in candidates.items()}
    with contextlib.redirect_stdout(io.StringIO()):
        bleu, bleu_per_image = Bleu(4).compute_score(references, generated)
        rouge, rouge_per_image = Rouge().compute_score(references, generated)
        cider, cider_per_image = Cider().compute_score(references, generated)
    metrics = coco_metrics(candidates, references)
    assert [metric.name for metric in metrics] == ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider"]
    np.testing.assert_allclose([metric.value for metric in metrics], [*bleu, rouge, cider], rtol=1e-9)
    for metric, expected in zip(metrics, [*bleu_per_image, rouge_per_image, cider_per_image], strict=True):
        np.testing.assert_allclose(metric.per_image, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("candidates", "references", "complaint"),
    [
        ({"a": "a dog"}, {"b": ["a dog"]}, "the same images"),
        ({}, {}, "no image"),
        ({"a": "a dog"}, {"a": []}, "image a has no reference"),
    ],
)
def test_captions_without_references_are_refused(candidates, references, complaint):
    with pytest.raises(ValueError, match=complaint):
        coco_metrics(candidates, references)
