"""Prototypes of a bank of past keys and values (PMA-Net, Barraco et al., ICCV 2023, Sec. 3.2), computed on the host.

The paper uses faiss on a GPU. scipy, which is installed anyway, has the same k-means; a bank of the default size takes
seconds (docs/families/pma_net.md).
"""

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

_ROWS_AT_A_TIME = 64
"""Prototypes whose distances to all keys are computed at a time: bounds the memory."""

Vectors = NDArray[np.float32]


def key_prototypes(keys: Vectors, count: int, iterations: int, random: np.random.Generator) -> Vectors:
    """Cluster keys by k-means (Eq. 3).

    Args:
        keys: (n, d).
        count: m, at most n.
        iterations: of Lloyd's algorithm.
        random: chooses the keys that it begins with.

    Returns:
        (m, d), the centroids. An empty cluster keeps its centroid.
    """
    first = keys[random.choice(len(keys), count, replace=False)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centroids: Vectors = kmeans2(keys, first, iter=iterations, minit="matrix", check_finite=False)[0]
    return centroids


def value_prototypes(
    prototypes: Vectors, keys: Vectors, values: Vectors, neighbours: int, *, normalise: bool
) -> Vectors:
    """Interpolate the values of the keys nearest to each prototype (Eq. 4).

    Args:
        prototypes: (m, d).
        keys, values: (n, d).
        neighbours: k, at most n.
        normalise: divide the weights exp(-distance) by their sum; Eq. 4 does not.

    Returns:
        (m, d)
    """
    found = np.empty_like(prototypes)
    squares = np.square(keys).sum(axis=1)
    for rows in _slices(len(prototypes), _ROWS_AT_A_TIME):
        # Squared distances less the square of the prototype, which is the same for all keys.
        order = squares - 2 * prototypes[rows] @ keys.T
        nearest = np.argpartition(order, neighbours - 1, axis=1)[:, :neighbours]
        near = np.linalg.norm(prototypes[rows, None] - keys[nearest], axis=-1)
        # Shifted by the smallest distance, the shares do not underflow.
        weights = np.exp(near.min(axis=1, keepdims=True) - near) if normalise else np.exp(-near)
        if normalise:
            weights /= weights.sum(axis=1, keepdims=True)
        found[rows] = np.einsum("mk,mkd->md", weights, values[nearest])
    return found


def _slices(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, start + size)
