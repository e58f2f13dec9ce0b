"""Prototypes of keys and values against k-means and nearest neighbours written out."""

import math

import numpy as np
import pytest
import torch

from training.models.pma_net import key_prototypes, value_prototypes


def plain_k_means(keys, first, iterations):
    centroids = [keys[index] for index in first]
    for _ in range(iterations):
        nearest = [min(range(len(first)), key=lambda c: float(((key - centroids[c]) ** 2).sum())) for key in keys]
        for c in range(len(first)):
            members = [key for key, own in zip(keys, nearest, strict=True) if own == c]
            if members:
                centroids[c] = np.mean(members, axis=0)
    return np.array(centroids)


@pytest.fixture
def banks():
    """Keys and values of two banks, (2, 60, 4)."""
    random = torch.Generator().manual_seed(3)
    return torch.randn(2, 60, 4, generator=random), torch.randn(2, 60, 4, generator=random)


@pytest.mark.parametrize(("count", "iterations"), [(1, 1), (5, 3), (12, 10)])
def test_key_prototypes_are_the_centroids_of_k_means_of_each_bank(banks, count, iterations):
    first = torch.stack([torch.randperm(60)[:count] for _ in banks[0]])
    found = key_prototypes(banks[0], first, iterations)
    for bank, own, centroids in zip(banks[0], first, found, strict=True):
        expected = plain_k_means(bank.double().numpy(), own.tolist(), iterations)
        np.testing.assert_allclose(centroids.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("neighbours", [1, 3, 60])
def test_value_prototypes_are_the_weighted_sums_of_the_nearest(banks, neighbours, normalise):
    keys, values = banks
    prototypes = torch.randn(2, 70, 4, generator=torch.Generator().manual_seed(5))
    found = value_prototypes(prototypes, keys, values, neighbours, normalise=normalise)
    for bank in range(2):
        for prototype, value in zip(prototypes[bank].tolist(), found[bank].numpy(), strict=True):
            distances = [math.dist(prototype, key) for key in keys[bank].tolist()]
            nearest = sorted(range(60), key=lambda j: distances[j])[:neighbours]
            weights = np.array([math.exp(-distances[j]) for j in nearest])
            weights = weights / weights.sum() if normalise else weights
            np.testing.assert_allclose(value, weights @ values[bank].numpy()[nearest], atol=1e-5)
