"""Prototypes of keys and values against k-means and nearest neighbours written out."""

import math

import numpy as np
import pytest

from training.models.prototypes import key_prototypes, value_prototypes


def plain_k_means(keys: np.ndarray, count: int, iterations: int, random: np.random.Generator) -> np.ndarray:
    centroids = [keys[index] for index in random.choice(len(keys), count, replace=False)]
    for _ in range(iterations):
        nearest = [min(range(count), key=lambda c: float(((key - centroids[c]) ** 2).sum())) for key in keys]
        for c in range(count):
            members = [key for key, own in zip(keys, nearest, strict=True) if own == c]
            if members:
                centroids[c] = np.mean(members, axis=0)
    return np.array(centroids)


@pytest.fixture
def bank() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return random.normal(size=(60, 4)).astype(np.float32), random.normal(size=(60, 4)).astype(np.float32)


@pytest.mark.parametrize(("count", "iterations"), [(1, 1), (5, 3), (12, 10)])
def test_key_prototypes_are_the_centroids_of_k_means(
    bank: tuple[np.ndarray, np.ndarray], count: int, iterations: int
) -> None:
    found = key_prototypes(bank[0], count, iterations, np.random.default_rng(7))
    expected = plain_k_means(bank[0].astype(float), count, iterations, np.random.default_rng(7))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32


@pytest.mark.filterwarnings("error")
def test_equal_keys_leave_empty_clusters_where_they_are() -> None:
    keys = np.ones((6, 2), np.float32)
    np.testing.assert_array_equal(key_prototypes(keys, 3, 5, np.random.default_rng(0)), np.ones((3, 2)))


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("neighbours", [1, 3, 60])
def test_value_prototypes_are_the_weighted_sums_of_the_nearest(
    bank: tuple[np.ndarray, np.ndarray], neighbours: int, normalise: bool
) -> None:
    keys, values = bank
    prototypes = np.random.default_rng(5).normal(size=(70, 4)).astype(np.float32)
    found = value_prototypes(prototypes, keys, values, neighbours, normalise=normalise)
    for prototype, value in zip(prototypes, found, strict=True):
        distances = [math.dist(prototype, key) for key in keys]
        nearest = sorted(range(60), key=lambda j: distances[j])[:neighbours]
        weights = np.array([math.exp(-distances[j]) for j in nearest])
        weights = weights / weights.sum() if normalise else weights
        np.testing.assert_allclose(value, weights @ values[nearest], atol=1e-5)


def test_normalised_weights_of_far_neighbours_do_not_vanish() -> None:
    keys, values = np.full((3, 2), 1e4, np.float32), np.array([[1, 2], [1, 2], [1, 2]], np.float32)
    found = value_prototypes(np.zeros((1, 2), np.float32), keys, values, 2, normalise=True)
    np.testing.assert_allclose(found, [[1, 2]])
