"""The result of every metric: a corpus value, values of the images, and statistics for resampling the images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

Captions = Mapping[str, str]
"""Image id to a caption, space-joined tokens."""
References = Mapping[str, Sequence[str]]
"""Image id to its human captions, space-joined tokens."""


class MetricError(Exception):
    """A metric cannot be computed here; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class Metric:
    """A metric whose corpus value is a function of statistics summed over the images."""

    name: str
    statistics: np.ndarray
    """(images, S) float64, in the order of the captions."""
    combine: Callable[[np.ndarray], np.ndarray]
    """Function from sums of statistics, (R, S), to values, (R,)."""
    per_image: np.ndarray
    """(images,) float64; NaN where the metric is undefined for the image."""

    @cached_property
    def value(self) -> float:
        """Value over all images."""
        return float(self.combine(self.statistics.sum(axis=0, keepdims=True))[0])

    def resample(self, counts: np.ndarray) -> np.ndarray:
        """Compute the values over resampled corpora.
        ``counts``: (R, images), how often each corpus contains each image.

        Returns:
            (R,) float64.
        """
        return self.combine(counts @ self.statistics)

    def of_images(self, rows: np.ndarray) -> "Metric":
        """Restrict the metric to the images whose entry in ``rows``, (images,) bool, is True."""
        return replace(self, statistics=self.statistics[rows], per_image=self.per_image[rows])


def ratio(sums: np.ndarray) -> np.ndarray:
    """Divide the first column by the second, (R, 2) -> (R,); NaN where the second is 0."""
    return np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), np.nan), where=sums[:, 1] != 0)


def mean_metric(name: str, per_image: Sequence[float] | np.ndarray) -> Metric:
    """Build a metric whose corpus value is the mean of the images' values, (images,)."""
    values = np.asarray(per_image, dtype=np.float64)
    return Metric(name, np.stack([values, np.ones_like(values)], axis=1), ratio, values)
