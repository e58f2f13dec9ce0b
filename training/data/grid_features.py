"""Cache of the grid features of a frozen backbone, read by memory map."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from smart_caption_ros.files import replaced_atomically, sha256_of_bytes
from training.data.caption_dataset import CaptionDataset
from training.vision.backbone import Backbone

BATCH_SIZE = 32
"""Photographs that are read and computed at once."""


def fingerprint(backbone: torch.nn.Module) -> str:
    """Compute the sha256 of a backbone's weights, which is part of the cache key."""
    digest = hashlib.sha256()
    for name, tensor in sorted(backbone.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class GridFeatures:
    """Features of a list of images in one or several arrays."""

    stores: Sequence[np.ndarray]
    """(images, views, N, token width) float16 each."""
    places: np.ndarray
    """(images of the list, 2) integers: index of the store, and row in it."""

    def read(self, images: np.ndarray, views: np.ndarray) -> np.ndarray:
        """Read features.

        Args:
            images: (B,) integers, indices into the list.
            views: (B,) integers, 0 for the photograph and 1 for the mirrored one.

        Returns:
            (B, N, token width) float32.
        """
        return np.stack(
            [
                self.stores[store][row, view].astype(np.float32)
                for (store, row), view in zip(self.places[images], views, strict=True)
            ]
        )


def grid_features(
    folder: Path, dataset: CaptionDataset, images: Sequence[str], backbone: Backbone, flip: bool
) -> GridFeatures:
    """Load or compute the features of ``images``, in which an image may occur several times.

    Each source of a mixture has its own cache file, which runs on that source alone use as well.

    Args:
        folder: of the cache files.
        dataset: of the photographs.
        images: image ids.
        backbone: makes the tokens.
        flip: whether to compute the mirrored photographs as well.

    Raises:
        DataError: a photograph cannot be read.
    """
    stores: list[np.ndarray] = []
    place: dict[str, tuple[int, int]] = {}
    for group in dataset.groups(images):
        place.update({image: (len(stores), row) for row, image in enumerate(group)})
        stores.append(load_or_extract(folder, dataset, group, backbone, flip))
    return GridFeatures(stores, np.array([place[image] for image in images]))


def load_or_extract(
    folder: Path, dataset: CaptionDataset, images: list[str], backbone: Backbone, flip: bool
) -> np.ndarray:
    """Compute the features of ``images`` at the first call; map them from ``folder`` afterwards.

    Arguments and errors are those of :func:`grid_features`, without repetitions in ``images``.

    Returns:
        Memory map (len(images), 2 if flip else 1, N, token width) float16; the second view is the mirrored photograph.
    """
    contents = [fingerprint(backbone), _digest_of_samples(dataset, images), images, flip]
    key = sha256_of_bytes(json.dumps(contents).encode())
    path = folder / f"grid-{key[:16]}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        views = 2 if flip else 1
        device = next(backbone.parameters()).device
        with (
            replaced_atomically(path) as unfinished,
            torch.inference_mode(),
            tqdm(total=len(images), desc="features", unit="image") as progress,
        ):
            shape = (len(images), views, math.prod(backbone.grid), backbone.token_width)
            store = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.float16, shape=shape)
            for start in range(0, len(images), BATCH_SIZE):
                frames = dataset.read_images(images[start : start + BATCH_SIZE])
                for view in range(views):
                    view_bgr = np.ascontiguousarray(frames[:, :, ::-1]) if view else frames
                    tokens = backbone(torch.from_numpy(view_bgr).to(device))
                    store[start : start + len(frames), view] = tokens.cpu().numpy().astype(np.float16)
                progress.update(len(frames))
            store.flush()
    return np.load(path, mmap_mode="r")


def _digest_of_samples(dataset: CaptionDataset, images: list[str]) -> str:
    """Compute a digest of three photographs, because a data set that is generated again reuses its file names."""
    samples = dataset.read_images([images[0], images[len(images) // 2], images[-1]])
    return sha256_of_bytes(samples.tobytes())
