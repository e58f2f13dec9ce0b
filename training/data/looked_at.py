"""``looked_at`` of the data folder: photographs captioned by looking at each, with lists of all things in them.

``captions.jsonl`` has an object a line: ``data_set`` and ``image`` (the picture is a member of that archive), ``part``
(train or dev), ``source``, ``captions`` (three, lower case), ``things`` (singular nouns, exhaustive: what is neither in
this list nor in the captions is not in the picture) and ``grey``. Other keys are not read.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.data.caption_dataset import CaptionDataset
from training.data.held_out import excluded_photographs
from training.data.json_files import read_json_lines
from training.data.photographs import JoinedPhotographs, PhotographArchive
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
KEYS = ("data_set", "image", "part", "source", "captions", "things")
"""Keys that every entry has."""
DOMAINS = {"spot_homes": "homes seen by a robot", "messy_rooms": "messy rooms"}
"""Names of the domains by source; both are in no training."""
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
class LookedAt:
    """The data set below the data folder; image ids are ``<data set>/<file name>``.

    Training leaves out black and white pictures, whose captions name no colour that they show, and those that show the
    same as a measured one (:mod:`training.data.held_out`); rooms kept aside for measuring are in no split.
    """

    sources: list[str] = field(default_factory=list)
    """Values of ``source`` that are read, such as ``door_detect``; all where none is named."""

    def open(self, data: Path) -> CaptionDataset:
        entries = _read_entries(data / "looked_at" / "captions.jsonl", self.sources)
        splits: dict[str, list[str]] = {part: [] for part in PARTS}
        for image, entry in entries.items():
            is_excluded = entry["image"] in excluded_photographs(entry["data_set"])
            if not (is_excluded or (entry["part"] == "train" and entry.get("grey", False))):
                splits[entry["part"]].append(image)
        return CaptionDataset(
            {image: tuple(entry["captions"]) for image, entry in entries.items()},
            splits,
            JoinedPhotographs({data_set: PhotographArchive(data / path) for data_set, path in ARCHIVES.items()}),
            things={image: tuple(entry["things"]) for image, entry in entries.items()},
            domains={image: DOMAINS.get(entry["source"], "other sources") for image, entry in entries.items()},
        )

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


def _read_entries(path: Path, sources: Collection[str]) -> dict[str, dict[str, Any]]:
    """Read the photographs of some sources, or of all, by image id and in file order."""
    entries: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(read_json_lines(path), 1):
        if missing := [key for key in KEYS if key not in entry]:
            raise DataError(f"{path}, entry {number}: {missing[0]} is missing")
        for key in ("captions", "things"):
            if not isinstance(entry[key], list) or not all(isinstance(text, str) for text in entry[key]):
                raise DataError(f"{path}, entry {number}: {key} is no list of texts")
        image = f"{entry['data_set']}/{entry['image']}"
        if entry["data_set"] not in [*ARCHIVES] or entry["part"] not in PARTS or image in entries:
            raise DataError(f"{path}, entry {number}: data_set or part is unknown, or the image is another entry's")
        if not sources or entry["source"] in sources:
            entries[image] = entry
    if not entries:
        raise DataError(f"{path}: no photograph of {', '.join(sources) or 'any source'}")
    return entries
