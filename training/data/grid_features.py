"""Cached features of views of photographs: which files they are in, and which rows of the files."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from smart_caption_ros.files import sha256_of_bytes
from training.data.caption_dataset import CaptionDataset
from training.data.feature_cache import FeatureCache


def fingerprint(network: nn.Module) -> str:
    """Compute the sha256 of the weights of a network that do not learn, which is part of the cache key."""
    learning = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        if name not in learning:
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class GridFeatures:
    """Cached features of a list of images, with the same number of views each."""

    caches: Sequence[FeatureCache]
    places: NDArray[np.integer]
    """(images, 2) index of the cache, and row of the first view in it."""

    def read(
        self, images: NDArray[np.integer], views: NDArray[np.integer]
    ) -> tuple[NDArray[np.float16], NDArray[np.bool_]]:
        """Read the features of B views.

        Args:
            images: (B,) indices into the list.
            views: (B,) which view of the image: 1 for the mirror image, else 0.

        Returns:
            (B, width) the features, undefined where they are not computed yet; and (B,) whether they are computed.
        """
        caches, rows = self._find(images, views)
        if len(self.caches) == 1:
            return self.caches[0].read(rows)
        values = np.empty((len(rows), self.caches[0].width), np.float16)
        computed = np.empty(len(rows), bool)
        for index in np.unique(caches):
            own = caches == index
            values[own], computed[own] = self.caches[index].read(rows[own])
        return values, computed

    def write(self, images: NDArray[np.integer], views: NDArray[np.integer], values: NDArray[np.float16]) -> None:
        """Write the features of B views, (B, width)."""
        caches, rows = self._find(images, views)
        for index in np.unique(caches):
            own = caches == index
            self.caches[index].write(rows[own], values[own])

    def _find(
        self, images: NDArray[np.integer], views: NDArray[np.integer]
    ) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Return the index of the cache of each view, and its row there."""
        return self.places[images, 0], self.places[images, 1] + views


def features_of_photographs(
    folder: Path, dataset: CaptionDataset, images: Sequence[str], facts: Sequence[Any], width: int, slots: int
) -> GridFeatures:
    """Open the cached features of photographs, of which the list may name one several times.

    Each source of a mixture has a file of its own, which runs on that source alone use as well.

    Args:
        folder: of the cache files.
        dataset: of the photographs.
        images: image ids.
        facts: JSON values that identify how the features are computed.
        width: values of a view's features.
        slots: 2 if the second view of a photograph, its mirror image, is kept as well, else 1.

    Raises:
        DataError: a photograph cannot be read, or there is no space for the features.
    """
    caches: list[FeatureCache] = []
    places: dict[str, tuple[int, int]] = {}
    for group in dataset.groups(images):
        places.update({image: (len(caches), row * slots) for row, image in enumerate(group)})
        path = folder / f"grid-{_key([*facts, digest_of_samples(dataset, group), group, slots])}.features"
        caches.append(FeatureCache(path, len(group) * slots, width))
    return GridFeatures(caches, np.array([places[image] for image in images]))


def _key(contents: Sequence[Any]) -> str:
    return sha256_of_bytes(json.dumps(contents).encode())[:16]


def digest_of_samples(dataset: CaptionDataset, images: list[str]) -> str:
    """Compute a digest of three photographs, because a data set that is generated again reuses its file names."""
    samples = dataset.read_images([images[0], images[len(images) // 2], images[-1]])
    return sha256_of_bytes(samples.tobytes())
