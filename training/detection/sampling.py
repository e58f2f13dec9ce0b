"""Which photographs an epoch of a detector has: those with rare objects more often."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.detection.labels import Labels

COMMON = 0.03
"""Share of the photographs that a class must be in to count as common."""
MOST = 4.0


def repeat_factors(labels: Labels, images: Sequence[str]) -> NDArray[np.float64]:
    """How often an epoch has each photograph (Gupta et al., LVIS, CVPR 2019, Sec. 5.4): for the rarest class in it
    ``sqrt(COMMON / share of the photographs with that class)``, at least 1 and at most ``MOST``.

    A photograph counts for a class with the score of its surest box of the class; those without labels come once.

    Returns:
        (images,)
    """
    presence = np.zeros((len(images), len(labels.class_names)))
    for row, image in enumerate(images):
        if (boxes := labels.boxes.get(image)) is not None:
            np.maximum.at(presence[row], boxes.class_ids, boxes.scores)
    shares = presence.sum(axis=0) / max(1, sum(image in labels.boxes for image in images))
    wanted = np.sqrt(COMMON / np.maximum(shares, 1e-9)).clip(1.0, MOST)
    # Between 1 and what the class asks for, by how sure it is that it is there.
    return np.asarray((1 + presence * (wanted - 1)).max(axis=1, initial=1.0))


def draw_epoch(factors: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """Places of the photographs of an epoch in random order, each as often as its factor says on average."""
    whole = np.floor(factors)
    times = whole + (random.random(len(factors)) < factors - whole)
    return np.asarray(random.permutation(np.repeat(np.arange(len(factors)), times.astype(int))))
