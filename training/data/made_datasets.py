"""Data sets that this project makes: photographs of rooms and caption sets (``recipes``), and rendered homes."""

from dataclasses import dataclass, field
from pathlib import Path

from training.data import coco_photographs
from training.data.coco_dataset import CocoDataset, CocoOptions
from training.data.coco_photographs import CocoPhotographs
from training.errors import DataError
from training.paths import CHECKOUT

ROOMS_PROVENANCE = [
    {"name": "NYU Depth v2 photographs (Silberman et al. 2012) with DAQUAR's questions (Malinowski, Fritz 2014)",
     "terms": "research use"},
    {"name": "ADE20K validation photographs and descriptions (Zhou et al. 2017)",
     "terms": "non-commercial research"},
    {"name": "COCO 2017 validation captions and 124 of their photographs (Lin et al. 2014, Chen et al. 2015)",
     "terms": "captions CC BY 4.0; photographs by Flickr's terms of use"},
]  # fmt: skip
CAPTION_SETS_PROVENANCE = {
    "coco_photographs": [
        coco_photographs.PROVENANCE,
        {"name": "captions of other photographs of COCO (Chen et al. 2015) and of Flickr30k (Young et al. 2014, "
         "through Multi30k) for photographs that people labelled, and COCO-QA's statements (Ren et al. 2015)",
         "terms": "COCO CC BY 4.0; Flickr30k and COCO-QA research use"},
    ],
    "nyu_rooms": [
        {"name": "NYU Depth v2 photographs (Silberman et al. 2012) with DAQUAR's questions (Malinowski, Fritz 2014) "
         "and SUN-SPOT's sentences (Mauceri et al. 2019)", "terms": "research use; sentences Apache-2.0"},
    ],
}  # fmt: skip
"""By the name of the set."""


@dataclass(frozen=True)
class RoomsOptions:
    """Path of the data set of ``python -m recipes.rooms``."""

    folder: str = "runs/rooms"
    """Below the checkout, or absolute."""
    sources: list[str] = field(default_factory=list)
    """Values of ``source`` of the training captions that are read, as ``human_sentences``; all where none is named."""

    def __post_init__(self) -> None:
        if not isinstance(self.sources, list) or not all(isinstance(source, str) for source in self.sources):
            raise ValueError(f"sources must be a list of texts, as [human_caption], not {self.sources!r}")

    def open(self, data: Path) -> CocoDataset:
        folder = _existing(self.folder, "python -m recipes.rooms")
        captions = {split: str(folder / f"captions_{split}.json") for split in ("train", "dev")}
        return CocoOptions(captions=captions, photographs=str(folder / "images"), sources=self.sources).open(data)

    @property
    def provenance(self) -> list[dict[str, str]]:
        return ROOMS_PROVENANCE


@dataclass(frozen=True)
class CaptionSetsOptions:
    """Path of the data sets of ``python -m recipes.caption_sets``."""

    folder: str = "runs/caption_sets"
    """Below the checkout, or absolute."""
    set: str = "coco_photographs"
    """One of :data:`CAPTION_SETS_PROVENANCE`."""

    def __post_init__(self) -> None:
        if self.set not in CAPTION_SETS_PROVENANCE:
            raise ValueError(f"set must be one of {', '.join(CAPTION_SETS_PROVENANCE)}, not {self.set!r}")

    def open(self, data: Path) -> CocoPhotographs:
        return CocoPhotographs(_existing(self.folder, "python -m recipes.caption_sets") / self.set)

    @property
    def provenance(self) -> list[dict[str, str]]:
        return CAPTION_SETS_PROVENANCE[self.set]


@dataclass(frozen=True)
class HouseholdOptions:
    """Path of the sequences of ``python -m simulation.household``."""

    folder: str = "runs/household"
    """Below the checkout, or absolute."""

    def open(self, data: Path) -> CocoDataset:
        folder = _existing(self.folder, "python -m simulation.household")
        return CocoOptions(captions={"train": str(folder / "captions.json")}, photographs=str(folder)).open(data)

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [
            {"name": "household scenes rendered by this project (simulation/household)", "terms": "Apache-2.0"},
        ]


def _existing(folder: str, command: str) -> Path:
    path = CHECKOUT / folder
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; make it with {command} -o {path}")
    return path
