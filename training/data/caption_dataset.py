"""The interface of every data set of captions."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import sha256_of_bytes
from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.vision.backbone import SQUASHED

SPLITS = ("train", "dev", "test")
"""Names of the splits."""


class Issue(NamedTuple):
    """Something in a data set that cannot be used."""

    kind: str
    """Name of the kind in the plural, as "empty captions"."""
    where: str
    """File, place and reason."""


class CaptionDataset(Protocol):
    """Photographs and captions by image id, in the :data:`SPLITS`."""

    if TYPE_CHECKING:  # a property would hide the field of a dataclass

        @property
        def captions(self) -> Mapping[str, Sequence[str]]:
            """Captions of every image, as written."""
            ...

        @property
        def issues(self) -> Sequence[Issue]:
            """Entries that were left out when the data set was opened."""
            return ()

        @property
        def things(self) -> Mapping[str, Sequence[str]]:
            """Exhaustive lists of the things in images, by image id; images without a list are left out."""
            return {}

    else:
        issues = ()
        things: Mapping[str, Sequence[str]] = MappingProxyType({})

    def split(self, name: str) -> list[str]:
        """List the image ids of a split, in a fixed order.

        Raises:
            DataError: unknown split, or one without images.
        """
        ...

    def source_of(self, image: str) -> str:
        """Name the source of an image in a mixture of data sets."""
        return ""

    def photograph_key(self, name: str) -> str:
        """Return a text that changes with the content of a photograph, by which computed features are found again.

        Raises:
            DataError: the photograph is missing or broken.
        """
        return f"{name} {sha256_of_bytes(self.read_image(name).tobytes())}"

    def check_photographs(self, images: Iterable[str]) -> None:
        """Check that the photographs exist.

        Raises:
            DataError: photographs are missing; says how many and names one.
        """
        ...

    def read_image(self, name: str) -> NDArray[np.uint8]:
        """Read a photograph, (H, W, 3) uint8 BGR.

        Raises:
            DataError: it is missing or broken; names the file and the reason.
        """
        ...

    def read_images(self, names: list[str], frames: Preprocessing = SQUASHED) -> np.ndarray:
        """Read photographs and resize them as the robot resizes frames, (len(names), height, width, 3) uint8 BGR.

        Raises:
            DataError: an image is missing or broken; names the file and the reason.
        """
        return np.stack([frames.apply(self.read_image(name)) for name in names])


class DatasetOptions(Protocol):
    """Options of a data set in an experiment file: a dataclass whose constructor raises ValueError for wrong ones."""

    def open(self, data: Path) -> CaptionDataset:
        """Open the data set.
        ``data``: folder that contains the paths of the options.

        Raises:
            DataError: the data is missing or malformed.
        """
        ...

    @property
    def provenance(self) -> list[dict[str, str]]:
        """Name and terms of the data, for the manifests of models."""
        ...
