"""Confidence intervals by the paired bootstrap over images (Koehn 2004)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from training.evaluation.metrics.metric import Metric

CONFIDENCE = 0.95
"""Confidence level of the intervals."""


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Difference between two models on the same images."""

    value: float
    interval: Interval

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes zero."""
        return self.interval.low > 0 or self.interval.high < 0


class Bootstrap:
    """Resampled corpora, drawn once, so that every metric of every model is computed on the same ones."""

    def __init__(self, images: int, resamples: int = 1000, seed: int = 0) -> None:
        """Draw the corpora.
        ``resamples``: number of corpora; 0 leaves the intervals undefined.
        """
        self.resamples, self.seed = resamples, seed
        random = np.random.default_rng(seed)
        self._counts = random.multinomial(images, np.full(images, 1 / images), size=resamples).astype(np.float64)

    def of_size(self, images: int) -> "Bootstrap":
        """Draw as many corpora of another number of images, with the same seed."""
        return Bootstrap(images, self.resamples, self.seed)

    def interval(self, metric: Metric) -> Interval:
        """Compute the percentile interval of a metric; NaN where it has no value."""
        return self._interval(metric.resample(self._counts))

    def difference(self, metric: Metric, baseline: Metric) -> Difference:
        """Subtract the baseline's metric from a model's; the interval is of the difference, paired by image."""
        resampled = metric.resample(self._counts) - baseline.resample(self._counts)
        return Difference(metric.value - baseline.value, self._interval(resampled))

    def _interval(self, values: np.ndarray) -> Interval:
        if np.isnan(values).all():  # also without resamples
            return Interval(math.nan, math.nan)
        outside = (1 - CONFIDENCE) / 2
        low, high = np.nanquantile(values, [outside, 1 - outside])
        return Interval(float(low), float(high))
