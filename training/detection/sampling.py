"""Sampling of the images of an epoch: images with rare objects are repeated."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.detection.labels import Labels

COMMON_SHARE = 0.03
"""Share of the images with a class from which on the class is not rare."""
MAX_REPEAT = 4.0
"""Largest repeat factor."""


def repeat_factors(labels: Labels, images: Sequence[str]) -> NDArray[np.float64]:
    """Compute the repeat factor of each image (Gupta et al., LVIS, CVPR 2019, Sec. 5.4).

    The factor is ``sqrt(COMMON_SHARE / share of the images with the class)`` for the rarest class in the image, at
    least 1 and at most ``MAX_REPEAT``. An image counts for a class with its highest score of the class; the factor of
    an image without labels is 1.

    Returns:
        (images,) float64.
    """
    presence = np.zeros((len(images), len(labels.class_names)))
    for row, image in enumerate(images):
        if (boxes := labels.boxes.get(image)) is not None:
            np.maximum.at(presence[row], boxes.class_ids, boxes.scores)
    shares = presence.sum(axis=0) / max(1, sum(image in labels.boxes for image in images))
    factors = np.sqrt(COMMON_SHARE / np.maximum(shares, 1e-9)).clip(1.0, MAX_REPEAT)
    # Interpolated between 1 and the factor of the class, by the score of the label.
    return np.asarray((1 + presence * (factors - 1)).max(axis=1, initial=1.0))


def draw_epoch(factors: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw the indices of the images of an epoch in random order; an image occurs as often as its factor on average."""
    whole = np.floor(factors)
    times = whole + (random.random(len(factors)) < factors - whole)
    return np.asarray(random.permutation(np.repeat(np.arange(len(factors)), times.astype(int))))
