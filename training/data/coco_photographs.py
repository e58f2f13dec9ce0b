"""``coco_photographs`` of the data folder: COCO photographs of 256 x 256 with captions and objects.

``captions.jsonl`` has an object a line: ``image``, ``coco_id``, ``part`` (train or dev), ``indoor``, ``sentences``
(people's captions, none for more than half of the train part) and ``objects`` (those of COCO's 80 classes that people
or labels say are there). Other keys are not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from training.data.held_out import excluded_photographs
from training.data.json_files import read_json, read_json_lines
from training.data.photographs import ArchivedPhotographs, PhotographArchive
from training.errors import DataError

CAPTIONS, IMAGES = "captions.jsonl", "images_256.zip"
"""Files of the data set."""
PARTS = ("train", "dev")
LICENCES = "coco_val2017_captions/captions_val2017.json"
"""File below the data folder that has the licences of some photographs."""
NONCOMMERCIAL = frozenset({1, 2, 3})
"""COCO's licence ids of CC BY-NC-SA, BY-NC and BY-NC-ND."""
PROVENANCE = {
    "name": "COCO 2014 (Lin et al. 2014, Chen et al. 2015): photographs of its training part with people's captions",
    "terms": "captions CC BY 4.0; photographs by Flickr's terms of use",
}


@dataclass(frozen=True)
class DescribedPhotograph:
    """Captions and objects of a photograph."""

    part: str
    """One of :data:`PARTS`."""
    indoor: bool
    """Whether it was taken inside a building, by a rule that is right for about nine of ten."""
    sentences: Sequence[str]
    """People's captions, as written."""
    objects: Sequence[str]
    """Class names of COCO."""


@dataclass(frozen=True)
class CocoPhotographs(ArchivedPhotographs):
    """The data set in ``root`` (``images_256.zip``, ``captions.jsonl``); image ids are file names."""

    root: Path
    noncommercial: frozenset[int] = frozenset()
    """``coco_id`` of photographs that are not trained on: their licences forbid commercial use."""

    @cached_property
    def photographs(self) -> dict[str, DescribedPhotograph]:
        """Every photograph by image id, in file order.

        Raises:
            DataError: the file is missing or malformed; names the entry.
        """
        path = self.root / CAPTIONS
        photographs: dict[str, DescribedPhotograph] = {}
        for number, entry in enumerate(read_json_lines(path), 1):
            where = f"{path}, entry {number}"
            image, part, indoor = entry.get("image"), entry.get("part"), entry.get("indoor")
            if not isinstance(image, str) or image in photographs:
                raise DataError(f"{where}: image is missing, no text, or that of another entry")
            if part not in PARTS or not isinstance(indoor, bool):
                raise DataError(f"{where}: part must be one of {', '.join(PARTS)}, and indoor true or false")
            sentences, objects = (_texts(where, entry, key) for key in ("sentences", "objects"))
            if part == "train" and entry.get("coco_id") in self.noncommercial:
                continue
            photographs[image] = DescribedPhotograph(part, indoor, sentences, objects)
        return photographs

    @cached_property
    def captions(self) -> dict[str, Sequence[str]]:
        """People's captions of every image that has any, as written."""
        return {image: photograph.sentences for image, photograph in self.photographs.items() if photograph.sentences}

    def split(self, name: str) -> list[str]:
        """List the images of a split that have people's captions, in file order.

        The training split lacks photographs that show the same as a measured one (:mod:`training.data.held_out`).
        """
        excluded = excluded_photographs("coco_photographs") if name == "train" else ()
        images = [image for image in self.captions if self.photographs[image].part == name and image not in excluded]
        if not images:
            raise DataError(f"{self.root}: no captions in split {name!r}; coco_photographs has {', '.join(PARTS)}")
        return images

    @cached_property
    def archive(self) -> PhotographArchive:
        """The photographs."""
        return PhotographArchive(self.root / IMAGES)


@dataclass(frozen=True)
class CocoPhotographsOptions:
    """Path of ``coco_photographs``, and which photographs are read."""

    folder: str = "coco_photographs"
    """Below the data folder, or absolute."""
    leave_out_noncommercial: bool = False
    """Do not train on photographs that :data:`LICENCES` says may not be used commercially; of most it says nothing."""

    def open(self, data: Path) -> CocoPhotographs:
        images = read_json(data / LICENCES)["images"] if self.leave_out_noncommercial else ()
        noncommercial = frozenset(image["id"] for image in images if image["license"] in NONCOMMERCIAL)
        return CocoPhotographs(data / self.folder, noncommercial)

    @property
    def provenance(self) -> list[dict[str, str]]:
        if not self.leave_out_noncommercial:
            return [PROVENANCE]
        terms = f"{PROVENANCE['terms']}, without those known to be non-commercial"
        return [{**PROVENANCE, "terms": terms}]


def _texts(where: str, entry: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of texts; empty where the entry has no such key."""
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise DataError(f"{where}: {key} is no list of texts")
    return tuple(value)
