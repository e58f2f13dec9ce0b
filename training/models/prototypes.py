"""Prototypes of a bank of past keys and values (PMA-Net, Barraco et al., ICCV 2023, Sec. 3.2), on the bank's device.

The paper uses faiss on a GPU. The computation is a few products of matrices, which torch has on every device.

Shapes: G banks that are clustered each by itself, n vectors a bank, m prototypes, d width.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

_DISTANCES_AT_A_TIME = 1 << 25
"""Distances that are computed at a time, 128 MB: the neighbours of fewer prototypes at a time take twice as long."""


def key_prototypes(keys: Tensor, first: Tensor, iterations: int) -> Tensor:
    """Cluster keys by k-means, Lloyd's algorithm (Eq. 3).

    Args:
        keys: (G, n, d) float32.
        first: (G, m) int64, the keys that it begins with.

    Returns:
        (G, m, d), the centroids. An empty cluster keeps its centroid.
    """
    groups, _, width = keys.shape
    centroids = keys.gather(1, first[..., None].expand(-1, -1, width))
    for _ in range(iterations):
        nearest = torch.cat([_distances(part, centroids).argmin(dim=2) for part in _parts(keys, centroids)], dim=1)
        # One axis for the clusters of all banks: the gradient-less sum over one axis is the fast one.
        clusters = (nearest + torch.arange(groups, device=keys.device)[:, None] * first.shape[1]).flatten()
        sums = torch.zeros_like(centroids).flatten(0, 1).index_add_(0, clusters, keys.flatten(0, 1))
        counts = torch.bincount(clusters, minlength=first.numel())[:, None]
        centroids = torch.where(counts > 0, sums / counts.clamp(min=1), centroids.flatten(0, 1)).view_as(centroids)
    return centroids


def value_prototypes(prototypes: Tensor, keys: Tensor, values: Tensor, neighbours: int, *, normalise: bool) -> Tensor:
    """Interpolate the values of the keys nearest to each prototype (Eq. 4).

    Args:
        prototypes: (G, m, d).
        keys, values: (G, n, d).
        neighbours: k, at most n.
        normalise: divide the weights exp(-distance) by their sum; Eq. 4 does not.

    Returns:
        (G, m, d)
    """
    found = []
    for part in _parts(prototypes, keys):
        nearest = _distances(part, keys).topk(neighbours, dim=2, largest=False).indices.flatten(1)[..., None]
        near_keys, near_values = (
            bank.gather(1, nearest.expand(-1, -1, bank.shape[2])).unflatten(1, (-1, neighbours))
            for bank in (keys, values)
        )
        near = (part[:, :, None] - near_keys).norm(dim=-1)
        weights = (-near).softmax(dim=-1) if normalise else (-near).exp()
        found.append((weights[..., None] * near_values).sum(dim=2))
    return torch.cat(found, dim=1)


def _parts(x: Tensor, others: Tensor) -> Iterator[Tensor]:
    """Split the vectors ``x`` so that the distances of a part to all ``others`` fit."""
    yield from x.split(max(1, _DISTANCES_AT_A_TIME // (x.shape[0] * others.shape[1])), dim=1)


def _distances(x: Tensor, others: Tensor) -> Tensor:
    """Compute squared distances less the squares of ``x``, which are the same for all ``others``: (G, a, b)."""
    return torch.baddbmm(others.square().sum(dim=2)[:, None], x, others.transpose(1, 2), alpha=-2)
