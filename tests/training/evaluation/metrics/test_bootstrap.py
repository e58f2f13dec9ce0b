"""Intervals over resampled images."""

import numpy as np
import pytest

from tests.training.evaluation.metrics.corpora import split
from training.evaluation.metrics.bootstrap import Bootstrap
from training.evaluation.metrics.coco import coco_metrics
from training.evaluation.metrics.metric import mean_metric


def test_the_interval_of_a_mean_is_the_normal_approximation():
    values = np.random.default_rng(1).normal(5, 2, size=400)
    interval = Bootstrap(400, resamples=4000).interval(mean_metric("m", values))
    half = 1.96 * values.std() / 20
    assert interval.low == pytest.approx(values.mean() - half, abs=0.03)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.03)


def test_corpus_scores_are_resampled_as_corpora_and_not_as_means_of_images():
    corpus = [("a dog runs on grass", ["a dog runs on the grass"]), ("a cat", ["the red cat runs"]), ("a", ["the dog"])]
    metric = coco_metrics(*split(corpus))[1]
    repeated = [corpus[0], corpus[0], corpus[2]]
    assert metric.resample(np.array([[2.0, 0, 1]]))[0] == pytest.approx(coco_metrics(*split(repeated))[1].value)


def test_differences_are_paired_by_image():
    random = np.random.default_rng(2)
    values = random.normal(0, 10, size=300)
    better = values + 0.5 + random.normal(0, 0.1, size=300)
    bootstrap = Bootstrap(300)
    one, two = mean_metric("m", values), mean_metric("m", better)
    assert bootstrap.interval(one).high > bootstrap.interval(two).low, "apart only when paired"
    difference = bootstrap.difference(two, one)
    assert difference.is_certain
    assert difference.interval.low == pytest.approx(0.5, abs=0.05)
    same = bootstrap.difference(one, one)
    assert (same.value, same.interval.low, same.interval.high, same.is_certain) == (0, 0, 0, False)
