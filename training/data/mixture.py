"""Several data sets as one: trained on all, scored on the dev splits of some."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import sha256_of_bytes
from training.data.caption_dataset import CaptionDataset, Issue
from training.data.tokenizer import tokenize
from training.errors import DataError


@contextmanager
def naming_source(name: str) -> Iterator[None]:
    """Let an error of a source begin with its name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"source {name}: {error}") from None


@dataclass(frozen=True)
class MixtureSource:
    """One data set of a mixture."""

    dataset: CaptionDataset
    repeat: int = 1
    """Number of times that each of its photographs occurs in an epoch."""
    weight: float = 1.0
    """Weight of each of its captions in the cross-entropy."""


@dataclass(frozen=True)
class Mixture(CaptionDataset):
    """A data set of several sources; image ids are ``<source>/<id in the source>``, and errors name the source."""

    sources: Mapping[str, MixtureSource]
    scored: Sequence[str]
    """Sources whose dev and test splits make up those of the mixture."""
    max_sentence_uses: int = 0
    """Training photographs that share one sentence; 0 for any number."""

    @cached_property
    def captions(self) -> dict[str, Sequence[str]]:
        """Captions of every image of every source, as written.

        Training photographs have only those that :attr:`max_sentence_uses` leaves.
        """
        captions: dict[str, Sequence[str]] = {
            f"{name}/{image}": captions
            for name, source in self.sources.items()
            for image, captions in source.dataset.captions.items()
        }
        if self.max_sentence_uses:
            trained_on = dict.fromkeys(self.split("train"))
            captions |= _cap_uses({image: captions[image] for image in trained_on}, self.max_sentence_uses)
        return captions

    @cached_property
    def things(self) -> Mapping[str, Sequence[str]]:
        """Exhaustive lists of things, of the sources that have them."""
        return {
            f"{name}/{image}": things
            for name, source in self.sources.items()
            for image, things in source.dataset.things.items()
        }

    def split(self, name: str) -> list[str]:
        """List the image ids of a split.

        ``train`` has the images of all sources, each as often as its source is repeated; the other splits have those
        of the scored sources.
        """
        images = []
        for source in self.sources if name == "train" else self.scored:
            with naming_source(source):
                own = self.sources[source].dataset.split(name)
            images += [f"{source}/{image}" for image in own] * (self.sources[source].repeat if name == "train" else 1)
        return images

    def source_of(self, image: str) -> str:
        return image.partition("/")[0]

    def check_photographs(self, images: Iterable[str]) -> None:
        for source, own in groupby(sorted(set(images)), self.source_of):
            with naming_source(source):
                self.sources[source].dataset.check_photographs([image.partition("/")[2] for image in own])

    @property
    def issues(self) -> list[Issue]:
        return [
            Issue(kind, f"source {name}: {where}")
            for name, source in self.sources.items()
            for kind, where in source.dataset.issues
        ]

    def photograph_key(self, name: str) -> str:
        source, _, image = name.partition("/")
        with naming_source(source):
            return self.sources[source].dataset.photograph_key(image)

    def read_image(self, name: str) -> NDArray[np.uint8]:
        source, _, image = name.partition("/")
        with naming_source(source):
            return self.sources[source].dataset.read_image(image)


def caption_weights(dataset: CaptionDataset, images: Sequence[str]) -> NDArray[np.float32]:
    """Return the weight of each image's captions in the cross-entropy, (len(images),) float32.

    All are 1 for a data set that is no mixture.
    """
    if not isinstance(dataset, Mixture):
        return np.ones(len(images), np.float32)
    return np.array([dataset.sources[dataset.source_of(image)].weight for image in images], np.float32)


def _cap_uses(captions: Mapping[str, Sequence[str]], limit: int) -> dict[str, list[str]]:
    """Drop sentences of photographs once ``limit`` photographs have them, compared by their words.

    Photographs are visited in the order of a hash of their ids, so that the first ones of a source have no advantage.
    A photograph without any other sentence keeps the one that is used least, so every photograph keeps one.
    """
    uses: Counter[tuple[str, ...]] = Counter()
    kept: dict[str, list[str]] = {}
    for image in sorted(captions, key=lambda name: sha256_of_bytes(name.encode())):
        words = {sentence: tuple(tokenize(sentence)) for sentence in captions[image]}
        kept[image] = [sentence for sentence in captions[image] if uses[words[sentence]] < limit]
        kept[image] = kept[image] or [min(captions[image], key=lambda sentence: uses[words[sentence]])]
        uses.update({words[sentence] for sentence in kept[image]})
    return kept
