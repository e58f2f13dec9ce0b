"""``looked_at`` of the data folder: photographs captioned by looking at each, with lists of all things in them.

``captions.jsonl`` has an object a line: ``data_set`` and ``image`` (the picture is a member of that archive), ``part``
(train or dev), ``source``, ``captions`` (three, lower case), ``things`` (singular nouns, exhaustive: what is neither in
this list nor in the captions is not in the picture) and ``grey``. Other keys are not read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.data.caption_dataset import CaptionDataset
from training.data.held_out import excluded_photographs
from training.data.json_files import read_json_lines
from training.data.photographs import PhotographArchive
from training.errors import DataError

ARCHIVES = {
    "looked_at": "looked_at/images.zip",
    "coco_photographs": "coco_photographs/images_256.zip",
    "nyu_rooms": "nyu_rooms/images.zip",
    "scenes": "scenes/images.zip",
    "ikea_rooms": "ikea_rooms/rooms.zip",
}
"""Archive of the pictures of each data set, below the data folder."""
PARTS = ("train", "dev")
NONE_STATED = "none stated"
TERMS = {
    "coco_photographs": ("COCO 2014", "Flickr's terms of use, each photograph its own licence"),
    "coco_indoor": ("COCO 2014", "Flickr's terms of use, each photograph its own licence"),
    "coco_val_few": ("COCO 2017", "Flickr's terms of use, each photograph its own licence"),
    "nyu_rooms": ("NYU Depth v2 (Silberman et al. 2012)", "research use"),
    "scenes": ("ADE20K validation (Zhou et al. 2017)", "non-commercial research"),
    "places_rooms": ("Places365 (Zhou et al. 2018)", "non-commercial research and education"),
    "places_rooms2": ("Places365 (Zhou et al. 2018)", "non-commercial research and education"),
    "door_detect": ("Open Images through DoorDetect", "CC BY 2.0"),
    "ikea_rooms": ("rooms of a furniture maker", "non-commercial"),
    "grocery_store": ("Grocery Store Dataset (Klasson et al. 2019)", "MIT"),
    "pets_home": ("Asirra", NONE_STATED),
    "phone_objects": ("a public repository", NONE_STATED),
    "imagenet_samples": ("ImageNet", "non-commercial research"),
    "elevator_panels": ("a public repository", NONE_STATED),
    "multi_floor": ("a public repository", NONE_STATED),
    "shop_products": ("a public repository", NONE_STATED),
    "desk_clutter": ("a public repository", NONE_STATED),
    "scan_renders": ("renders of scanned rooms", "non-commercial research"),
    "jetson_samples": ("a public repository with samples of ImageNet and SUN RGB-D", "MIT"),
    "scene_samples": ("a public repository with pictures of the web", "MIT"),
    "appliance_panels": ("a public repository", NONE_STATED),
    "scene_few": ("a public repository", "MIT"),
    "robot_docs_2": ("documentation of robots", "as each repository states"),
    "stretch_docs": ("documentation of a robot", "Apache-2.0"),
    "robot_docs_1": ("documentation of robots", "as each repository states"),
}
"""Origin and terms of the pictures by source, of those that are trained on: no black and white ones, no dev places."""


@dataclass(frozen=True)
class LookedAtPhotograph:
    """Captions and list of things of a photograph."""

    data_set: str
    """A key of :data:`ARCHIVES`."""
    part: str
    """One of :data:`PARTS`."""
    source: str
    captions: Sequence[str]
    things: Sequence[str]
    grey: bool
    """Black and white, so that its captions name no colour that it shows."""


@dataclass(frozen=True)
class LookedAt(CaptionDataset):
    """The data set below the data folder ``data``; image ids are ``<data set>/<file name>``."""

    data: Path
    sources: Sequence[str] = ()
    """Sources that are read; all where none is named."""

    @cached_property
    def photographs(self) -> dict[str, LookedAtPhotograph]:
        """Every photograph by image id, in file order.

        Raises:
            DataError: the file is missing or malformed; names the entry.
        """
        path = self.data / "looked_at" / "captions.jsonl"
        photographs: dict[str, LookedAtPhotograph] = {}
        for number, entry in enumerate(read_json_lines(path), 1):
            try:
                image = f"{entry['data_set']}/{entry['image']}"
                photograph = LookedAtPhotograph(
                    entry["data_set"], entry["part"], entry["source"], tuple(entry["captions"]),
                    tuple(entry["things"]), entry.get("grey", False),
                )  # fmt: skip
            except KeyError as error:
                raise DataError(f"{path}, entry {number}: {error.args[0]} is missing") from None
            if photograph.data_set not in ARCHIVES or photograph.part not in PARTS or image in photographs:
                raise DataError(f"{path}, entry {number}: data_set or part is unknown, or the image is another entry's")
            if not self.sources or photograph.source in self.sources:
                photographs[image] = photograph
        if not photographs:
            raise DataError(f"{path}: no photograph of {', '.join(self.sources) or 'any source'}")
        return photographs

    @cached_property
    def captions(self) -> dict[str, Sequence[str]]:
        """Captions of every image, as written."""
        return {image: photograph.captions for image, photograph in self.photographs.items()}

    @cached_property
    def things(self) -> Mapping[str, Sequence[str]]:
        """Everything that can be seen in an image, by image id."""
        return {image: photograph.things for image, photograph in self.photographs.items()}

    def split(self, name: str) -> list[str]:
        """List the image ids of a split, in file order.

        Training leaves out black and white pictures and those that show the same as a measured one
        (:mod:`training.data.held_out`); rooms kept aside for measuring are in no split.
        """
        images = [
            image
            for image, photograph in self.photographs.items()
            if photograph.part == name
            and image.partition("/")[2] not in excluded_photographs(photograph.data_set)
            and not (photograph.grey and name == "train")
        ]
        if not images:
            raise DataError(f"{self.data / 'looked_at'}: no captions in split {name!r}; there are {', '.join(PARTS)}")
        return images

    @cached_property
    def _archives(self) -> dict[str, PhotographArchive]:
        return {data_set: PhotographArchive(self.data / path) for data_set, path in ARCHIVES.items()}

    def check_photographs(self, images: Iterable[str]) -> None:
        by_data_set: dict[str, list[str]] = {}
        for image in images:
            data_set, _, file = image.partition("/")
            by_data_set.setdefault(data_set, []).append(file)
        for data_set, files in by_data_set.items():
            self._archives[data_set].check(files)

    def photograph_key(self, name: str) -> str:
        data_set, _, file = name.partition("/")
        return self._archives[data_set].key(file)

    def read_image(self, name: str) -> NDArray[np.uint8]:
        data_set, _, file = name.partition("/")
        return self._archives[data_set].read(file)


@dataclass(frozen=True)
class LookedAtOptions:
    """The sources of ``looked_at`` that are read."""

    sources: list[str] = field(default_factory=list)
    """Values of ``source``, such as ``door_detect``; all where none is named."""

    def __post_init__(self) -> None:
        if not isinstance(self.sources, list) or not all(isinstance(source, str) for source in self.sources):
            raise ValueError(f"sources must be a list of texts, as [door_detect], not {self.sources!r}")

    def open(self, data: Path) -> LookedAt:
        return LookedAt(data, tuple(self.sources))

    @property
    def provenance(self) -> list[dict[str, str]]:
        """The captions, and the pictures of each source that is trained on, with their terms."""
        captions = {
            "name": "captions and lists of things written for this project by looking at each photograph",
            "terms": "CC0",
        }
        pictures = [
            {"name": f"pictures {source}: {origin}", "terms": terms}
            for source, (origin, terms) in TERMS.items()
            if not self.sources or source in self.sources
        ]
        return [captions, *pictures]
