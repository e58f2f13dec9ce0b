"""What a frozen backbone sees in random views of photographs, computed once: a head then learns twice as fast.

The maps are all between 0 and 6 (the backbone's activations are ReLU6), so a byte a value keeps them: 326 kB a view.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from training.data.augmentation import View, random_view
from training.data.datasets import CaptionDataset
from training.data.photographs import IMAGE_SIZE
from training.detection.head import STRIDES
from training.detection.labels import Labels
from training.detection.loss import Targets, targets_of
from training.engine import Engine
from training.models.mobilenet_v2 import MobileNetV2

_STEP = 6 / 255
_SHAPES = tuple(
    (IMAGE_SIZE // stride, IMAGE_SIZE // stride, width)
    for stride, width in zip(STRIDES, MobileNetV2.level_widths, strict=True)
)
_ENDS = [0, *accumulate(math.prod(shape) for shape in _SHAPES)]


class CachedViews:
    """Several random views of each photograph, with the boxes in them. Two files, removed by :meth:`remove`."""

    def __init__(self, path: Path, images: Sequence[str], labels: Labels, count: int) -> None:
        """
        Args:
            path: the files are called so, with endings of their own.
            images: of a data set.
            count: views of each.
        """
        self.count = count
        self._images, self._labels = list(images), labels
        self._maps_file = path.with_name(f"{path.name}.maps.npy")
        self._views_file = path.with_name(f"{path.name}.views.npy")
        self._maps = np.zeros((0, count, _ENDS[-1]), np.uint8)
        self._views: list[list[View]] = []

    def fill(
        self, dataset: CaptionDataset, backbone: MobileNetV2, engine: Engine, crop: float, seed: int, batch: int = 16
    ) -> None:
        """Compute them, unless the files are there.

        Args:
            crop: smallest share of a side that a view keeps; half of the views are mirrored.

        Raises:
            DataError: an image cannot be read.
        """
        if not self._maps_file.exists():
            self._compute(dataset, backbone, engine, crop, seed, batch)
        self._maps = np.load(self._maps_file, mmap_mode="r")
        rows = np.load(self._views_file)
        self._views = [[View(a, b, c, d, bool(flip)) for a, b, c, d, flip in own.tolist()] for own in rows]

    def _compute(
        self, dataset: CaptionDataset, backbone: MobileNetV2, engine: Engine, crop: float, seed: int, batch: int
    ) -> None:
        # The same name in every run: the gigabytes that a killed one has left are written over, not added to.
        unfinished = self._maps_file.with_suffix(".unfinished")
        maps = np.lib.format.open_memmap(
            unfinished, mode="w+", dtype=np.uint8, shape=(len(self._images), self.count, _ENDS[-1])
        )
        views = np.zeros((len(self._images), self.count, 5), np.float32)
        random = np.random.default_rng(seed)
        with tqdm(total=len(self._images), desc="maps", unit="image") as progress:
            for start in range(0, len(self._images), batch):
                frames = dataset.read_images(self._images[start : start + batch])
                for view in range(self.count):
                    seen = [random_view(frame, bool(random.random() < 0.5), crop, random) for frame in frames]
                    views[start : start + len(frames), view] = [place for _, place in seen]
                    maps[start : start + len(frames), view] = _maps_of(
                        np.stack([frame for frame, _ in seen]), backbone, engine
                    )
                progress.update(len(frames))
        maps.flush()
        np.save(self._views_file, views)
        unfinished.rename(self._maps_file)

    def read(self, images: NDArray[np.int64], views: NDArray[np.int64]) -> tuple[list[Tensor], Targets]:
        """
        Args:
            images: (B,) places in the list of images.
            views: (B,) which view of each.

        Returns:
            The maps as :class:`training.models.mobilenet_v2.Pyramid` has them, float32; and the boxes.
        """
        rows = torch.from_numpy(np.stack([self._maps[image, view] for image, view in zip(images, views, strict=True)]))
        levels = [
            # Bytes lie channel by channel in a cell: the layout in which convolutions are fastest.
            rows[:, start:end].float().mul_(_STEP).unflatten(1, shape).permute(0, 3, 1, 2)
            for (start, end), shape in zip(pairwise(_ENDS), _SHAPES, strict=True)
        ]
        names = [self._images[image] for image in images]
        places = [self._views[image][view] for image, view in zip(images, views, strict=True)]
        return levels, targets_of(self._labels, names, places)

    def remove(self) -> None:
        """Give the disk back."""
        for file in (self._maps_file, self._views_file):
            file.unlink(missing_ok=True)


@torch.inference_mode()
def _maps_of(frames: NDArray[np.uint8], backbone: MobileNetV2, engine: Engine) -> NDArray[np.uint8]:
    with engine.autocast():
        levels = backbone.pyramid(torch.from_numpy(frames).to(engine.device)).levels
    parts = [(level.float() / _STEP).round().permute(0, 2, 3, 1).flatten(1).byte().cpu() for level in levels]
    return torch.cat(parts, dim=1).numpy()
