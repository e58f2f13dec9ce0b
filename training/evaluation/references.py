"""Images with human captions that captioners are scored against: from a data set, COCO's files or a folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.image_folder import IMAGE_SUFFIXES, ImageFolder, natural_order
from training.data.caption_dataset import CaptionDataset
from training.data.coco import Karpathy, image_key, read_captions, read_image_files
from training.data.json_files import read_json_object
from training.data.photographs import ImageReader, PhotographArchive, read_photograph
from training.data.things import Things
from training.errors import DataError
from training.evaluation.metrics.truth import ShownThings


@dataclass(frozen=True)
class References:
    """Images with human captions, or images alone.

    Methods raise :class:`DataError` for a file or folder that is missing, malformed or without images or captions.
    """

    name: str
    """Name of the data set and split, or of the annotation file."""
    captions: Mapping[str, Sequence[str]]
    """Human captions of each image; none for the images of a folder."""
    read_image: ImageReader | None
    """None where the images are not available."""
    frequency_captions: Sequence[Sequence[str]] | None = None
    """Captions of each image of the corpus for CIDEr-D's document frequencies; None takes ``captions``."""
    frequencies_from: str = "the references"
    """Name of that corpus."""
    objects: Mapping[str, Iterable[str]] | None = None
    """For each image COCO's class names of the objects in it; None where the data set has none."""
    domains: Mapping[str, str] = field(default_factory=dict)
    """Name of the domain of images, also of others."""
    shown: ShownThings | None = None
    """What the images show, where there are exhaustive lists."""

    @classmethod
    def of_dataset(cls, name: str, dataset: CaptionDataset, split: str) -> "References":
        """Take a split of a data set, with objects, lists of things and domains where it has them."""
        references = cls(
            name=f"{name}_{split}",
            captions={image: dataset.captions[image] for image in dataset.split(split)},
            read_image=dataset.read_image,
            frequency_captions=[dataset.captions[image] for image in dataset.split("train")],
            frequencies_from=f"{name} train",
            objects=dataset.objects,
            domains=dataset.domains,
        )
        if not dataset.things.keys() >= references.captions.keys():
            return references
        things = Things.of_lists(dataset.things.values())
        return replace(references, shown=ShownThings.of(things, dataset.things, references.captions))

    @classmethod
    def of_karpathy(cls, path: Path, split: str, images: Path | None) -> "References":
        """Take a split of ``dataset_coco.json``; ``images`` is the folder or zip of the photographs."""
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
        """Take the caption annotations of a COCO file, and the domains that it names, as that of nocaps does.

        ``images`` is the folder or zip of the photographs.
        """
        annotations = read_captions(path)
        reader = _image_reader(images, annotations.file_names)
        references = cls(path.stem, annotations.captions, reader, domains=annotations.domains)
        return references._not_empty(path)

    @classmethod
    def of_image_info(cls, path: Path, images: Path) -> "References":
        """Take the images of a COCO file without annotations, ``images`` being their folder or zip."""
        files = read_image_files(path)
        return cls(name=path.stem, captions=dict.fromkeys(files, ()), read_image=_image_reader(images, files))

    @classmethod
    def of_images(cls, images: Path) -> "References":
        """Take the images of a folder or zip in natural order (image2 before image10), without human captions."""
        if images.suffix == ".zip":
            members = [name for name in PhotographArchive(images).names if name.lower().endswith(IMAGE_SUFFIXES)]
            if not members:
                raise DataError(f"{images}: no image in it (files ending in {', '.join(IMAGE_SUFFIXES)})")
            names = sorted(members, key=lambda name: natural_order(Path(name)))
        elif not images.is_dir():
            raise DataError(f"{images}: no such folder or zip of images")
        else:
            try:
                names = [path.name for path in ImageFolder(str(images)).paths]
            except SourceError as error:
                raise DataError(str(error)) from None
        read_image = _image_reader(images, {name: name for name in names})
        return cls(name=str(images), captions=dict.fromkeys(names, ()), read_image=read_image)

    @property
    def has_captions(self) -> bool:
        """Whether any image has a human caption."""
        return any(self.captions.values())

    def with_frequencies_of(self, path: Path) -> "References":
        """Count CIDEr-D's document frequencies in another COCO caption file."""
        captions = list(read_captions(path).captions.values())
        if not captions:
            raise DataError(f"{path}: no caption in it")
        return replace(self, frequency_captions=captions, frequencies_from=path.name)

    def only(self, path: Path) -> "References":
        """Keep the images of a text file with an image id a line, in the order that they have here."""
        try:
            wanted = {line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()} - {""}
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the list of images cannot be read ({error})") from None
        if not wanted:
            raise DataError(f"{path}: no image id in it")
        if unknown := sorted(wanted - self.captions.keys()):
            raise DataError(f"{path}: {len(unknown)} images are not in {self.name}, for example {unknown[0]}")
        kept = {image: captions for image, captions in self.captions.items() if image in wanted}
        return replace(self, name=f"{self.name}, {path.name}", captions=kept)

    def with_domains(self, path: Path) -> "References":
        """Divide the images by a JSON file: an object with a list of image ids for the name of each domain."""
        expected = "an object with a list of image ids for each domain"
        document = read_json_object(path, expected)
        if not all(isinstance(images, list) for images in document.values()):
            raise DataError(f"{path}: expected {expected}")
        domains: dict[str, str] = {}
        for domain, images in document.items():
            for image in map(image_key, images):
                if domains.setdefault(image, domain) != domain:
                    raise DataError(f"{path}: image {image} is in two domains, {domains[image]} and {domain}")
        if not domains.keys() & self.captions.keys():
            raise DataError(f"{path}: no image of {self.name} in it")
        return replace(self, domains=domains)

    def _not_empty(self, path: Path) -> "References":
        if not self.captions:
            raise DataError(f"{path}: no caption in {self.name}")
        return self


def _image_reader(images: Path | None, files: Mapping[str, str]) -> ImageReader | None:
    """Build a reader of the images in a folder or zip, None without one; ``files`` are their names by image id."""
    if images is None:
        return None
    archive = PhotographArchive(images) if images.suffix == ".zip" else None

    def read_image(image: str) -> NDArray[np.uint8]:
        if image not in files:
            raise DataError(f"image {image} has captions but no file_name")
        return archive.read(files[image]) if archive else read_photograph(images / files[image], image)

    return read_image
