"""Data sets that a captioner is trained on, behind one protocol and a registry."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from training.data import coco_dataset, flickr8k
from training.data.coco_dataset import CocoDataset, CocoOptions
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
            DataError: unknown split, or one without images.
        """
        ...

    def check_photographs(self, images: Iterable[str]) -> None:
        """
        Raises:
            DataError: photographs are missing; says how many and names one.
        """
        ...

    def read_images(self, names: list[str]) -> np.ndarray:
        """(len(names), 224, 224, 3) uint8 BGR.

        Raises:
            DataError: an image is missing or broken; names the file and the reason.
        """
        ...


@dataclass(frozen=True)
class Flickr8kOptions:
    """Where Flickr8k is."""

    folder: str = "flickr8k"
    """Below the data folder, or absolute."""


@dataclass(frozen=True)
class DatasetKind:
    """What the registry knows of a data set."""

    options: type
    """Dataclass of what an experiment may say of it; raises ValueError for what does not go together."""
    open: Callable[[Path, Any], CaptionDataset]
    """Called with the data folder and the options."""
    provenance: dict[str, str]
    """Name and terms, for the manifest of what is trained on it."""


DATASETS = {
    "flickr8k": DatasetKind(
        Flickr8kOptions, lambda data, options: Flickr8k(data / options.folder), flickr8k.PROVENANCE
    ),
    "coco": DatasetKind(CocoOptions, CocoDataset.open, coco_dataset.PROVENANCE),
}
"""By the name that an experiment gives."""


def open_dataset(config: "DataConfig", data: Path) -> CaptionDataset:
    """The data set of an experiment.

    Raises:
        DataError: the data is missing or malformed.
    """
    kind = DATASETS[config.dataset]
    return kind.open(data, kind.options(**config.options))
