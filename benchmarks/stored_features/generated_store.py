"""Stored features for measurements, with the same bytes in each layout."""

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from training.data.feature_store_writer import StoreWriter

WIDTH, HEIGHT = 640, 480
"""Size of the photographs, pixels."""
_DISTINCT_ROWS = 10_000


@dataclass(frozen=True)
class Extent:
    """Extent of the features."""

    images: int
    """The ids are 0, 1, ..."""
    regions: int
    """Regions of an image."""
    width: int
    """Width of a feature."""

    @property
    def bytes_per_image(self) -> int:
        """Size of an image: features in float16, boxes in float32."""
        return self.regions * (2 * self.width + 4 * 4)


class Features:
    """Random features of each image; the rows repeat in other combinations, so that drawing them takes little time."""

    def __init__(self, extent: Extent, seed: int) -> None:
        random = np.random.default_rng(seed)
        self._extent = extent
        self._rows = random.standard_normal((_DISTINCT_ROWS + extent.regions, extent.width), np.float32).astype("<f2")
        corners = np.sort(random.random((extent.regions, 2, 2), np.float32), axis=1)
        self.boxes = (corners * (WIDTH, HEIGHT)).reshape(-1, 4).astype(np.float32)
        """Boxes of every image, (regions, 4) pixels."""

    def of(self, image: int) -> np.ndarray:
        """Return the features of an image, (regions, width) float16."""
        start = image * 7919 % _DISTINCT_ROWS
        return self._rows[start : start + self._extent.regions]


def write_store(folder: Path, extent: Extent, seed: int) -> None:
    """Write a feature store."""
    features = Features(extent, seed)
    with StoreWriter(folder, {"made_by": "benchmarks.large_data"}, extent.width) as store:
        for image in range(extent.images):
            store.add(str(image), features.of(image), features.boxes, WIDTH, HEIGHT)


def write_npz(folder: Path, extent: Extent, seed: int) -> None:
    """Write a file for each image."""
    features = Features(extent, seed)
    for image in range(extent.images):
        np.savez(folder / f"{image}.npz", features=features.of(image), boxes=features.boxes)


def write_hdf5(folder: Path, extent: Extent, seed: int) -> None:
    """Write a file in M2's layout: two datasets for each image."""
    features = Features(extent, seed)
    with h5py.File(folder / "features.hdf5", "w") as file:
        for image in range(extent.images):
            file[f"{image}_features"], file[f"{image}_boxes"] = features.of(image), features.boxes


def write_memory_map(folder: Path, extent: Extent, seed: int) -> None:
    """Write a file of all features, (images, regions, width), and one of all boxes."""
    features = Features(extent, seed)
    shape = (extent.images, extent.regions, extent.width)
    array = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float16, shape=shape)
    for image in range(extent.images):
        array[image] = features.of(image)
    array.flush()
    np.save(folder / "boxes.npy", np.tile(features.boxes, (extent.images, 1, 1)))
