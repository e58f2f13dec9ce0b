"""Several data sets as one: trained together, scored on the dev splits of some of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from training.errors import DataError

if TYPE_CHECKING:
    from training.data.datasets import CaptionDataset


@dataclass(frozen=True)
class Source:
    """One data set of a mixture."""

    dataset: "CaptionDataset"
    repeat: int = 1
    """How often an epoch has each of its photographs."""


@dataclass(frozen=True)
class Mixture:
    """Image ids are ``<source>/<id of the source>``."""

    sources: Mapping[str, Source]
    scored: Sequence[str]
    """The sources whose dev and test splits are those of the mixture."""

    @cached_property
    def captions(self) -> dict[str, Sequence[str]]:
        """As written, of every image of every source."""
        return {
            f"{name}/{image}": captions
            for name, source in self.sources.items()
            for image, captions in source.dataset.captions.items()
        }

    def split(self, name: str) -> list[str]:
        """``train`` is that of all sources, each photograph as often as its source is repeated; others are of the
        scored sources.

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
        """One of each source."""
        by_source: dict[str, list[str]] = {}
        for image in dict.fromkeys(images):
            by_source.setdefault(image.partition("/")[0], []).append(image)
        return list(by_source.values())

    def check_photographs(self, images: Iterable[str]) -> None:
        """
        Raises:
            DataError: photographs are missing; says of which source, how many, and names one.
        """
        for source, own in _runs(sorted(set(images))):
            try:
                self.sources[source].dataset.check_photographs(own)
            except DataError as error:
                raise DataError(f"source {source}: {error}") from None

    def read_images(self, names: list[str]) -> np.ndarray:
        """(len(names), 224, 224, 3) uint8 BGR.

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
    """Neighbours of one source together: its name and their ids there."""
    for source, run in groupby(images, lambda image: image.partition("/")[0]):
        yield source, [image.partition("/")[2] for image in run]
