"""The interface of every data set of captions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from training.vision.backbone import IMAGE_SIZE

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
        ...

    def check_photographs(self, images: Iterable[str]) -> None:
        """Check that the photographs exist.

        Raises:
            DataError: photographs are missing; says how many and names one.
        """
        ...

    def read_images(self, names: list[str], size: int = IMAGE_SIZE) -> np.ndarray:
        """Read photographs and resize them as the robot resizes frames, (len(names), size, size, 3) uint8 BGR.

        Raises:
            DataError: an image is missing or broken; names the file and the reason.
        """
        ...
