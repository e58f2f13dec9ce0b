"""What a user would write instead of a feature store: a `torch.utils.data.Dataset` that reads image by image."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from torch.utils.data import DataLoader, Dataset

from benchmarks.stored_features.generated_store import Extent, write_hdf5, write_memory_map, write_npz


class NpzImages(Dataset[tuple[np.ndarray, np.ndarray]]):
    """A folder with an npz file for each image."""

    def __init__(self, folder: Path, images: int) -> None:
        self._folder, self._images = folder, images

    def __len__(self) -> int:
        return self._images

    def __getitem__(self, image: int) -> tuple[np.ndarray, np.ndarray]:
        with np.load(self._folder / f"{image}.npz") as arrays:
            return arrays["features"], arrays["boxes"]


class Hdf5Images(Dataset[tuple[np.ndarray, np.ndarray]]):
    """M2's layout. Every worker opens the file once; M2's own code opens it for every image."""

    def __init__(self, folder: Path, images: int) -> None:
        self._path, self._images = folder / "features.hdf5", images
        self._file: h5py.File | None = None

    def __len__(self) -> int:
        return self._images

    def __getitem__(self, image: int) -> tuple[np.ndarray, np.ndarray]:
        if self._file is None:
            self._file = h5py.File(self._path, "r")
        return self._file[f"{image}_features"][()], self._file[f"{image}_boxes"][()]


class MemoryMapImages(Dataset[tuple[np.ndarray, np.ndarray]]):
    """One npy file of all features and one of all boxes, as memory maps."""

    def __init__(self, folder: Path, images: int) -> None:
        self._features, self._boxes = (np.load(folder / f"{kind}.npy", mmap_mode="r") for kind in ("features", "boxes"))
        self._images = images

    def __len__(self) -> int:
        return self._images

    def __getitem__(self, image: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self._features[image]), np.array(self._boxes[image])


ALTERNATIVES: dict[str, tuple[Callable[[Path, Extent, int], None], type[Any]]] = {
    "npz": (write_npz, NpzImages),
    "hdf5": (write_hdf5, Hdf5Images),
    "memory_map": (write_memory_map, MemoryMapImages),
}
"""Writer, called with an existing folder, extent and seed, and class of the data set, called with folder and images."""


def read_epoch(dataset: Dataset[Any], order: np.ndarray, batch: int, workers: int) -> None:
    """Read an epoch by worker processes, and make the features float32 as the captioner needs them."""
    # "fork" is the default on Linux, but not in a process that was itself started by "spawn".
    loader = DataLoader(dataset, batch, sampler=order.tolist(), num_workers=workers, multiprocessing_context="fork")
    for features, _ in loader:
        features.float()
