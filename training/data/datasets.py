"""Data sets of captions: the registry by which experiments name them."""

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.configs.parsing import build_config
from training.configs.schema import DataConfig
from training.data import coco_photographs, flickr8k
from training.data.caption_dataset import CaptionDataset
from training.data.coco_dataset import CocoDataset, CocoOptions
from training.data.coco_photographs import CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.mixture import Mixture, Source
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
HOUSEHOLD_PROVENANCE = {
    "name": "household scenes rendered by this project (simulation/household)",
    "terms": "Apache-2.0",
}


@dataclass(frozen=True)
class Flickr8kOptions:
    """Path of Flickr8k."""

    folder: str = "flickr8k"
    """Below the data folder, or absolute."""


@dataclass(frozen=True)
class CocoPhotographsOptions:
    """Path of ``coco_photographs``."""

    folder: str = "coco_photographs"
    """Below the data folder, or absolute."""


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


@dataclass(frozen=True)
class HouseholdOptions:
    """Path of the sequences of ``python -m simulation.household``."""

    folder: str = "runs/household"
    """Below the checkout, or absolute."""


@dataclass(frozen=True)
class MixtureOptions:
    """Several data sets in one experiment."""

    sources: dict[str, Any]
    """For each source, by a name of choice: ``dataset``, its ``options``, ``repeat`` (how often its photographs occur
    in an epoch; 0 leaves them out) and ``weight`` (of its captions in the cross-entropy)."""
    scored: list[str] = field(default_factory=list)
    """Sources whose dev splits select the model; all where none is named."""
    max_sentence_uses: int = 0
    """Training photographs that share one sentence; 0 for any number. The others lose it, unless they have no other."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise ValueError("sources: name at least one")
        for name, source in self.sources.items():
            _check_source(f"sources: {name}", name, source)
        if not any(source.get("repeat", 1) for source in self.sources.values()):
            raise ValueError("sources: all have repeat 0, so none is trained on")
        for name in self.scored:
            if name not in self.sources:
                raise ValueError(f"scored: {name!r} is none of the sources, {', '.join(self.sources)}")
        if self.max_sentence_uses < 0:
            raise ValueError(f"max_sentence_uses must be 0 or more, not {self.max_sentence_uses}")


def _check_source(where: str, name: Any, source: Any) -> None:
    if not isinstance(name, str) or "/" in name:
        raise ValueError(f"{where}: a source's name is a word without a slash")
    if not isinstance(source, dict) or not source.keys() <= {"dataset", "options", "repeat", "weight"}:
        raise ValueError(f"{where}: expected dataset, options, repeat and weight, found {source!r}")
    kind, repeat, weight = source.get("dataset"), source.get("repeat", 1), source.get("weight", 1.0)
    if kind not in DATASETS or kind == "mixture":
        known = ", ".join(known for known in DATASETS if known != "mixture")
        raise ValueError(f"{where}: dataset must be one of {known}, not {kind!r}")
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 0:
        raise ValueError(f"{where}: repeat must be a whole number, not {repeat!r}")
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < math.inf:
        raise ValueError(f"{where}: weight must be a positive number, not {weight!r}; repeat: 0 leaves a source out")
    try:
        _options(source)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: options: {error}") from None


def _options(source: dict[str, Any]) -> Any:
    return DATASETS[source["dataset"]].options(**source.get("options") or {})


def _open_mixture(data: Path, options: MixtureOptions) -> Mixture:
    sources = {}
    for name, source in options.sources.items():
        try:
            opened = DATASETS[source["dataset"]].open(data, _options(source))
        except DataError as error:
            raise DataError(f"source {name}: {error}") from None
        sources[name] = Source(opened, source.get("repeat", 1), source.get("weight", 1.0))
    return Mixture(sources, options.scored or list(sources), options.max_sentence_uses)


def _open_rooms(data: Path, options: RoomsOptions) -> CocoDataset:
    folder = _made(options.folder, "python -m recipes.rooms")
    captions = {split: str(folder / f"captions_{split}.json") for split in ("train", "dev")}
    return CocoDataset.open(
        data, CocoOptions(captions=captions, photographs=str(folder / "images"), sources=options.sources)
    )


def _open_caption_sets(data: Path, options: CaptionSetsOptions) -> CocoPhotographs:
    return CocoPhotographs(_made(options.folder, "python -m recipes.caption_sets") / options.set)


def _open_household(data: Path, options: HouseholdOptions) -> CocoDataset:
    folder = _made(options.folder, "python -m simulation.household")
    return CocoDataset.open(
        data, CocoOptions(captions={"train": str(folder / "captions.json")}, photographs=str(folder))
    )


def _made(folder: str, command: str) -> Path:
    path = CHECKOUT / folder
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; make it with {command} -o {path}")
    return path


@dataclass(frozen=True)
class DatasetKind:
    """Entry of the registry."""

    options: type
    """Dataclass of the options; its constructor raises ValueError for a wrong combination."""
    open: Callable[[Path, Any], CaptionDataset]
    """Opens the data set; called with the data folder and the options."""
    provenance: Callable[[Any], list[dict[str, str]]]
    """Returns name and terms of each data set, for the manifests of models; called with the options."""


DATASETS: dict[str, DatasetKind] = {
    "flickr8k": DatasetKind(
        Flickr8kOptions, lambda data, options: Flickr8k(data / options.folder), lambda _: [flickr8k.PROVENANCE]
    ),
    "coco": DatasetKind(CocoOptions, CocoDataset.open, lambda options: [options.provenance]),
    "coco_photographs": DatasetKind(
        CocoPhotographsOptions,
        lambda data, options: CocoPhotographs(data / options.folder),
        lambda _: [coco_photographs.PROVENANCE],
    ),
    "rooms": DatasetKind(RoomsOptions, _open_rooms, lambda _: ROOMS_PROVENANCE),
    "caption_sets": DatasetKind(
        CaptionSetsOptions, _open_caption_sets, lambda options: CAPTION_SETS_PROVENANCE[options.set]
    ),
    "household": DatasetKind(HouseholdOptions, _open_household, lambda _: [HOUSEHOLD_PROVENANCE]),
    "mixture": DatasetKind(
        MixtureOptions,
        _open_mixture,
        lambda options: [
            entry
            for source in options.sources.values()
            for entry in DATASETS[source["dataset"]].provenance(_options(source))
        ],
    ),
}
"""Data sets by their names in experiment files."""


def provenance(config: DataConfig) -> list[dict[str, str]]:
    """Collect name and terms of the data sets of an experiment."""
    kind = DATASETS[config.dataset]
    return kind.provenance(kind.options(**config.options))


def provenance_of_record(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """Collect name and terms of the data sets whose captions a trained captioner has learnt.

    Args:
        record: of the captioner. Options that an earlier version had and this one lacks are ignored.
    """
    return provenance(build_config(DataConfig, record["experiment"]["data"], "record", ignore_unknown_keys=True))


def merge_provenance(*sources: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join lists of names and terms, with each entry once."""
    merged: list[dict[str, Any]] = []
    for source in sources:
        merged += [entry for entry in source if entry not in merged]
    return merged


def open_dataset(config: DataConfig, data: Path) -> CaptionDataset:
    """Open the data set of an experiment.

    Args:
        config: the entry ``data`` of the experiment.
        data: folder that contains its paths.

    Raises:
        DataError: the data is missing or malformed.
    """
    kind = DATASETS[config.dataset]
    with _garbage_collection_paused():
        return kind.open(data, kind.options(**config.options))


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Keep the collector from going through all captions again and again while they are read: half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
