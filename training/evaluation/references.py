"""Images with human captions that captioners are scored against, from a data set or from COCO's files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from training.data.coco import read_captions, read_objects
from training.data.flickr8k import Flickr8k
from training.data.karpathy import Karpathy
from training.data.photographs import read_photograph
from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms
from training.evaluation.metrics.scoring import ChairData

ImageReader = Callable[[str], np.ndarray]
"""Reads the image of an id, (H, W, 3) uint8 BGR; raises DataError."""


@dataclass(frozen=True)
class References:
    """Images with human captions."""

    name: str
    """Name of the data set and split, or of the annotation file."""
    captions: Mapping[str, Sequence[str]]
    """Human captions of each image."""
    read_image: ImageReader | None
    """None where the images are not available."""
    frequency_captions: Sequence[Sequence[str]] | None = None
    """Captions of each image of the corpus for CIDEr-D's document frequencies; None takes ``captions``."""
    frequencies_from: str = "the references"
    """Name of that corpus."""

    @classmethod
    def of_flickr8k(cls, data: Path, split: str) -> "References":
        """Take a split of Flickr8k.

        Raises:
            DataError: the data set is missing or malformed, or the split is unknown.
        """
        dataset = Flickr8k(data / "flickr8k")
        return cls(
            name=f"flickr8k_{split}",
            captions={image: dataset.captions[image] for image in dataset.split(split)},
            read_image=lambda image: dataset.read_images([image])[0],
            frequency_captions=[dataset.captions[image] for image in dataset.split("train")],
            frequencies_from="flickr8k train",
        )

    @classmethod
    def of_karpathy(cls, path: Path, split: str, images: Path | None) -> "References":
        """Take a split of ``dataset_coco.json``; ``images`` is the folder of the photographs.

        Raises:
            DataError: the file is missing or malformed, or the split is unknown or empty.
        """
        karpathy = Karpathy.load(path)
        train = [karpathy.captions[image] for image in karpathy.split("train")]
        references = cls(
            name=f"karpathy_{split}",
            captions={image: karpathy.captions[image] for image in karpathy.split(split)},
            read_image=_image_reader(images, karpathy.files),
        )
        if train:
            references = replace(references, frequency_captions=train, frequencies_from="karpathy train")
        return references._not_empty(path)

    @classmethod
    def of_coco(cls, path: Path, images: Path | None) -> "References":
        """Take the caption annotations of a COCO file; ``images`` is the folder of the photographs.

        Raises:
            DataError: the file is missing, malformed or empty.
        """
        annotations = read_captions(path)
        reader = _image_reader(images, annotations.file_names)
        return cls(name=path.stem, captions=annotations.captions, read_image=reader)._not_empty(path)

    def with_frequencies_of(self, path: Path) -> "References":
        """Count CIDEr-D's document frequencies in another COCO caption file.

        Raises:
            DataError: the file is missing, malformed or empty.
        """
        captions = list(read_captions(path).captions.values())
        if not captions:
            raise DataError(f"{path}: no caption in it")
        return replace(self, frequency_captions=captions, frequencies_from=path.name)

    def _not_empty(self, path: Path) -> "References":
        if not self.captions:
            raise DataError(f"{path}: no caption in {self.name}")
        return self


def _image_reader(folder: Path | None, files: Mapping[str, str]) -> ImageReader | None:
    if folder is None:
        return None

    def read_image(image: str) -> np.ndarray:
        if image not in files:
            raise DataError(f"image {image} has captions but no file_name")
        return read_photograph(folder / files[image], image)

    return read_image


def read_chair_data(instances: Sequence[Path], synonyms: Path) -> ChairData:
    """Read the objects of the images and the synonyms of their classes, for CHAIR.

    Args:
        instances: files of instance annotations of COCO.
        synonyms: file with the list of synonyms, see :meth:`Synonyms.load`.

    Raises:
        DataError: a file is missing or malformed, or the list lacks a class.
    """
    known, objects = Synonyms.load(synonyms), read_objects(instances)
    if unknown := {name for names in objects.values() for name in names} - known.class_of.keys():
        raise DataError(f"the synonym list lacks the classes {', '.join(sorted(unknown))} of the instances")
    return ChairData(objects, known, ", ".join(map(str, instances)))
