"""Several data sets as one: trained on all, scored on the dev splits of some."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from training.data.caption_dataset import CaptionDataset
from training.errors import DataError


@dataclass(frozen=True)
class Source:
    """One data set of a mixture."""

    dataset: CaptionDataset
    repeat: int = 1
    """How often each of its photographs occurs in an epoch."""


@dataclass(frozen=True)
class Mixture:
    """A data set of several sources; image ids are ``<source>/<id in the source>``."""

    sources: Mapping[str, Source]
    scored: Sequence[str]
    """Sources whose dev and test splits make up those of the mixture."""

    @cached_property
    def captions(self) -> dict[str, Sequence[str]]:
        """Captions of every image of every source, as written."""
        return {
            f"{name}/{image}": captions
            for name, source in self.sources.items()
            for image, captions in source.dataset.captions.items()
        }

    def split(self, name: str) -> list[str]:
        """List the image ids of a split.

        ``train`` has the images of all sources, each as often as its source is repeated; the other splits have those
        of the scored sources.

        Raises:
            DataError: a source has no such split.
        """
        images = []
        for source in self.sources if name == "train" else self.scored:
            try:
                own = self.sources[source].dataset.split(name)
            except DataError as error:
                raise DataError(f"source {source}: {error}") from None
            images += [f"{source}/{image}" for image in own] * (self.sources[source].repeat if name == "train" else 1)
        return images

    def groups(self, images: Sequence[str]) -> list[list[str]]:
        """Return the images without repetitions, one group for each source."""
        by_source: dict[str, list[str]] = {}
        for image in dict.fromkeys(images):
            by_source.setdefault(image.partition("/")[0], []).append(image)
        return list(by_source.values())

    def check_photographs(self, images: Iterable[str]) -> None:
        """Check that the photographs exist.

        Raises:
            DataError: photographs are missing; names the source and one of them, and says how many.
        """
        for source, own in _runs(sorted(set(images))):
            try:
                self.sources[source].dataset.check_photographs(own)
            except DataError as error:
                raise DataError(f"source {source}: {error}") from None

    def read_images(self, names: list[str]) -> np.ndarray:
        """Read photographs, (len(names), 224, 224, 3) uint8 BGR.

        Raises:
            DataError: an image is missing or broken; names the source, the file and the reason.
        """
        found = []
        for source, own in _runs(names):
            try:
                found.append(self.sources[source].dataset.read_images(own))
            except DataError as error:
                raise DataError(f"source {source}: {error}") from None
        return np.concatenate(found)


def _runs(images: Iterable[str]) -> Iterable[tuple[str, list[str]]]:
    """Group consecutive images of one source: the source's name and the image ids in it."""
    for source, run in groupby(images, lambda image: image.partition("/")[0]):
        yield source, [image.partition("/")[2] for image in run]
