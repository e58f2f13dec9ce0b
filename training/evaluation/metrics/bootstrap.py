"""Confidence intervals by resampling images, the same images for every model (Koehn 2004)."""

import math
from dataclasses import dataclass

import numpy as np

from training.evaluation.metrics.metric import Metric


@dataclass(frozen=True)
class Interval:
    """Bounds between which the middle of the resampled values lies."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How far a model is from another one on the same images."""

    value: float
    interval: Interval

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.interval.low > 0 or self.interval.high < 0


class Bootstrap:
    """Resampled corpora of ``images`` images, drawn once; every metric of every model is computed on the same."""

    def __init__(self, images: int, resamples: int = 1000, confidence: float = 0.95, seed: int = 0) -> None:
        self.images, self.resamples, self.confidence, self.seed = images, resamples, confidence, seed
        random = np.random.default_rng(seed)
        self._counts = random.multinomial(images, np.full(images, 1 / images), size=resamples).astype(np.float64)

    def interval(self, metric: Metric) -> Interval:
        """Percentile interval of a metric."""
        return self._interval(metric.resample(self._counts))

    def difference(self, metric: Metric, baseline: Metric) -> Difference:
        """A model's metric less the baseline's, with the interval of that difference, paired by image."""
        resampled = metric.resample(self._counts) - baseline.resample(self._counts)
        return Difference(metric.value - baseline.value, self._interval(resampled))

    def _interval(self, values: np.ndarray) -> Interval:
        if np.isnan(values).all():
            return Interval(math.nan, math.nan)
        outside = (1 - self.confidence) / 2
        low, high = np.nanquantile(values, [outside, 1 - outside])
        return Interval(float(low), float(high))
