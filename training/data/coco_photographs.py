"""``coco_photographs`` of the data folder: COCO photographs of 256 x 256 with captions and objects.

``captions.jsonl`` has an object a line: ``image``, ``coco_id``, ``part`` (train or dev), ``indoor`` (by a rule that is
right for about nine of ten), ``sentences`` (people's captions, none for more than half of the train part) and
``objects`` (those of COCO's 80 classes that people or labels say are there). Other keys are not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.configs.ranges import Bool
from training.data.caption_dataset import CaptionDataset
from training.data.held_out import excluded_photographs
from training.data.json_files import read_json, read_json_lines
from training.data.photographs import PhotographArchive
from training.errors import DataError

CAPTIONS, IMAGES = "captions.jsonl", "images_256.zip"
"""Files of the data set."""
PARTS = ("train", "dev")
DOMAINS = {True: "indoors", False: "outdoors"}
"""Names of the domains by ``indoor``."""
LICENCES = "coco_val2017_captions/captions_val2017.json"
"""File below the data folder that has the licences of some photographs."""
NONCOMMERCIAL = frozenset({1, 2, 3})
"""COCO's licence ids of CC BY-NC-SA, BY-NC and BY-NC-ND."""
PROVENANCE = {
    "name": "COCO 2014 (Lin et al. 2014, Chen et al. 2015): photographs of its training part with people's captions",
    "terms": "captions CC BY 4.0; photographs by Flickr's terms of use",
}


@dataclass(frozen=True)
class CocoPhotographs:
    """The data set in ``folder`` (``images_256.zip``, ``captions.jsonl``); image ids are file names.

    Splits have the images with people's captions. The training split lacks photographs that show the same as a measured
    one (:mod:`training.data.held_out`).
    """

    folder: str = "coco_photographs"
    """Below the data folder, or absolute."""
    leave_out_noncommercial: Bool = False
    """Do not train on photographs that :data:`LICENCES` says may not be used commercially; of most it says nothing."""

    def open(self, data: Path) -> CaptionDataset:
        excluded = excluded_photographs("coco_photographs")
        images = read_json(data / LICENCES)["images"] if self.leave_out_noncommercial else ()
        noncommercial = frozenset(image["id"] for image in images if image["license"] in NONCOMMERCIAL)
        captions: dict[str, Sequence[str]] = {}
        splits: dict[str, list[str]] = {part: [] for part in PARTS}
        entries = {entry["image"]: entry for entry in read_entries(data / self.folder / CAPTIONS)}
        for image, entry in entries.items():
            is_trained_on = entry["part"] == "train"
            if not entry["sentences"] or (is_trained_on and entry.get("coco_id") in noncommercial):
                continue
            captions[image] = entry["sentences"]
            if not is_trained_on or image not in excluded:
                splits[entry["part"]].append(image)
        return CaptionDataset(
            captions,
            splits,
            PhotographArchive(data / self.folder / IMAGES),
            objects={image: entries[image]["objects"] for image in captions},
            domains={image: DOMAINS[entries[image]["indoor"]] for image in captions},
        )

    @property
    def provenance(self) -> list[dict[str, str]]:
        if not self.leave_out_noncommercial:
            return [PROVENANCE]
        terms = f"{PROVENANCE['terms']}, without those known to be non-commercial"
        return [{**PROVENANCE, "terms": terms}]


def read_entries(path: Path) -> list[dict[str, Any]]:
    """Read the photographs of ``captions.jsonl``, in file order; ``sentences`` and ``objects`` may be empty.

    Raises:
        DataError: the file is missing or malformed; names the entry.
    """
    entries = read_json_lines(path)
    known: set[str] = set()
    for number, entry in enumerate(entries, 1):
        where = f"{path}, entry {number}"
        image = entry.get("image")
        if not isinstance(image, str) or image in known:
            raise DataError(f"{where}: image is missing, no text, or that of another entry")
        if entry.get("part") not in PARTS or not isinstance(entry.get("indoor"), bool):
            raise DataError(f"{where}: part must be one of {', '.join(PARTS)}, and indoor true or false")
        known.add(image)
        for key in ("sentences", "objects"):
            texts = entry.setdefault(key, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
                raise DataError(f"{where}: {key} is no list of texts")
    return entries
