"""Data sets that a captioner is trained on, behind one protocol and a registry."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from training.data.flickr8k import Flickr8k

if TYPE_CHECKING:
    from training.config import DataConfig


class CaptionDataset(Protocol):
    """Photographs by id, what people said of them, and the splits ``train``, ``dev`` and ``test``."""

    @property
    def captions(self) -> Mapping[str, Sequence[str]]:
        """Captions of every image, as written."""
        ...

    def split(self, name: str) -> list[str]:
        """Image ids of a split, in a fixed order.

        Raises:
            DataError: unknown split.
        """
        ...

    def read_images(self, names: list[str]) -> np.ndarray:
        """(len(names), 224, 224, 3) uint8 BGR.

        Raises:
            DataError: an image is missing or broken; names the file and the reason.
        """
        ...


DATASETS: dict[str, Callable[[Path], CaptionDataset]] = {"flickr8k": lambda data: Flickr8k(data / "flickr8k")}
"""By the name that an experiment gives; called with the data folder."""


def open_dataset(config: "DataConfig", data: Path) -> CaptionDataset:
    """The data set of an experiment.

    Raises:
        DataError: the data is missing or malformed.
    """
    return DATASETS[config.dataset](data)
