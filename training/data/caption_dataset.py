"""The interface of every data set of captions."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.vision.backbone import SQUASHED

SPLITS = ("train", "dev", "test")
"""Names of the splits."""


class CaptionDataset(Protocol):
    """Photographs and captions by image id, in the :data:`SPLITS`."""

    @property
    def captions(self) -> Mapping[str, Sequence[str]]:
        """Captions of every image, as written."""
        ...

    def split(self, name: str) -> list[str]:
        """List the image ids of a split, in a fixed order.

        Raises:
            DataError: unknown split, or one without images.
        """
        ...

    def groups(self, images: Sequence[str]) -> list[list[str]]:
        """Return the images without repetitions, grouped by source, so that each source has its own feature cache."""
        return [list(dict.fromkeys(images))]

    def check_photographs(self, images: Iterable[str]) -> None:
        """Check that the photographs exist.

        Raises:
            DataError: photographs are missing; says how many and names one.
        """
        ...

    def read_images(self, names: list[str], frames: Preprocessing = SQUASHED) -> np.ndarray:
        """Read photographs and resize them as the robot resizes frames, (len(names), height, width, 3) uint8 BGR.

        Raises:
            DataError: an image is missing or broken; names the file and the reason.
        """
        ...


class DatasetOptions(Protocol):
    """Options of a data set in an experiment file: a dataclass whose constructor raises ValueError for wrong ones."""

    def open(self, data: Path) -> CaptionDataset:
        """Open the data set.

        Args:
            data: folder that contains the paths of the options.

        Raises:
            DataError: the data is missing or malformed.
        """
        ...

    @property
    def provenance(self) -> list[dict[str, str]]:
        """Name and terms of the data, for the manifests of models."""
        ...
