"""What every metric gives: a corpus value, a value for each image, and the means to resample the images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Captions = Mapping[str, str]
"""A caption of space-joined tokens for each image."""
References = Mapping[str, Sequence[str]]
"""The human captions of the same images, likewise."""


@dataclass(frozen=True)
class Metric:
    """A metric that depends on an image's caption through ``statistics`` alone, added up over the images."""

    name: str
    statistics: np.ndarray
    """(images, S) float64, in the order of the captions."""
    combine: Callable[[np.ndarray], np.ndarray]
    """Sums of statistics, (R, S), to values, (R,)."""
    per_image: np.ndarray
    """(images,) float64; NaN where an image has no value of its own."""

    @cached_property
    def value(self) -> float:
        """The value over all images."""
        return float(self.combine(self.statistics.sum(axis=0, keepdims=True))[0])

    def resample(self, counts: np.ndarray) -> np.ndarray:
        """Values over resampled corpora.

        Args:
            counts: (R, images), how often each image is drawn.

        Returns:
            (R,) float64.
        """
        return self.combine(counts @ self.statistics)


def ratio(sums: np.ndarray) -> np.ndarray:
    """First column over second; NaN where the second is 0."""
    return np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), np.nan), where=sums[:, 1] != 0)


def mean_metric(name: str, per_image: Sequence[float] | np.ndarray) -> Metric:
    """The metric that is the mean of its values for the images."""
    values = np.asarray(per_image, dtype=np.float64)
    return Metric(name, np.stack([values, np.ones_like(values)], axis=1), ratio, values)


def check_same_images(candidates: Captions, references: References) -> None:
    """
    Raises:
        ValueError: the two do not name the same images, none at all, or an image without references.
    """
    if candidates.keys() != references.keys():
        raise ValueError("candidates and references must name the same images")
    if not candidates:
        raise ValueError("no image to score")
    for image, captions in references.items():
        if not captions:
            raise ValueError(f"image {image} has no reference")
