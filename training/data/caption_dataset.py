"""A data set of captions, whatever it was read from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging.preprocessing import Preprocessing
from training.data.photographs import Photographs
from training.errors import DataError
from training.vision.backbone import SQUASHED

SPLITS = ("train", "dev", "test")
"""Names of the splits."""


class Issue(NamedTuple):
    """Something in a data set that cannot be used."""

    kind: str
    """Name of the kind in the plural, as "empty captions"."""
    where: str
    """File, place and reason."""


@dataclass(frozen=True)
class CaptionDataset:
    """Photographs and captions by image id. Methods raise :class:`DataError` for images that are missing or broken."""

    captions: Mapping[str, Sequence[str]]
    """Captions of every image, as written."""
    splits: Mapping[str, Sequence[str]]
    """Image ids of each of :data:`SPLITS` that the data set has, in a fixed order."""
    photographs: Photographs
    issues: Sequence[Issue] = ()
    """Entries that were left out when the data set was opened."""
    things: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Exhaustive lists of the things in images; images without a list are left out."""
    objects: Mapping[str, Sequence[str]] | None = None
    """COCO's class names of the objects in every image; None where the data set has none."""
    domains: Mapping[str, str] = field(default_factory=dict)
    """Domain of images, for scores of each domain."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """What images have in common that may not be divided among splits; images without a group are left out."""
    source_weights: Mapping[str, float] = field(default_factory=dict)
    """For each source of a mixture the weight of its captions in the cross-entropy; its image ids begin with the source
    and a slash. Empty for a data set that is no mixture."""

    def split(self, name: str) -> list[str]:
        """List the image ids of a split, which must have some."""
        if not (images := self.splits.get(name)):
            known = ", ".join(split for split, members in self.splits.items() if members)
            raise DataError(f"no image in split {name!r}; there are {known}")
        return list(images)

    def source_of(self, image: str) -> str:
        """Name the source of an image in a mixture; empty without one."""
        return image.partition("/")[0] if self.source_weights else ""

    def caption_weights(self, images: Sequence[str]) -> NDArray[np.float32]:
        """Return the weight of each image's captions in the cross-entropy, (len(images),) float32."""
        return np.array([self.source_weights.get(self.source_of(image), 1.0) for image in images], np.float32)

    def check_photographs(self, images: Iterable[str]) -> None:
        """Check that photographs exist; the error says how many are missing."""
        self.photographs.check(images)

    def read_image(self, name: str) -> NDArray[np.uint8]:
        """Read a photograph, (H, W, 3) uint8 BGR."""
        return self.photographs.read(name)

    def read_images(self, names: list[str], frames: Preprocessing = SQUASHED) -> np.ndarray:
        """Read photographs and resize them as the robot resizes frames, (len(names), height, width, 3) uint8 BGR."""
        return np.stack([frames.apply(self.read_image(name)) for name in names])


class DatasetReader(Protocol):
    """A kind of data set, a dataclass of its options in an experiment file, which raises ValueError for wrong ones."""

    def open(self, data: Path) -> CaptionDataset:
        """Read the data set; paths of the options are below the folder ``data``.

        Raises:
            DataError: the data is missing or malformed.
        """
        ...

    @property
    def provenance(self) -> list[dict[str, str]]:
        """Name and terms of the data, for the manifests of models."""
        ...
