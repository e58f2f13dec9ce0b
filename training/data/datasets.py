"""Data sets of captions: the registry by which experiments name them, mixtures of them, and their terms."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic.dataclasses

from smart_caption_ros.files import sha256_of_bytes
from training.configs.parsing import build_config
from training.configs.ranges import Int
from training.configs.schema import FORBID_UNKNOWN_KEYS, DataConfig
from training.data.caption_dataset import SPLITS, CaptionDataset, DatasetReader, Issue
from training.data.coco_dataset import Coco
from training.data.coco_photographs import CocoPhotographs
from training.data.flickr8k import Flickr8k
from training.data.looked_at import LookedAt
from training.data.own_data import Folder, Table
from training.data.photographs import JoinedPhotographs, naming_source
from training.data.tokenizer import tokenize
from training.errors import ConfigError


@dataclass(frozen=True)
class Mixture:
    """Several data sets as one: trained on all, scored on some. Image ids are ``<source>/<id in the source>``."""

    sources: dict[str, Any]
    """For each source, by a name of choice: ``dataset``, its ``options``, ``repeat`` (how often its photographs occur
    in an epoch; 0 leaves them out) and ``weight`` (of its captions in the cross-entropy)."""
    scored: list[str] = field(default_factory=list)
    """Sources whose dev splits select the model; all where none is named."""
    max_sentence_uses: Int = 0
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

    def open(self, data: Path) -> CaptionDataset:
        opened: dict[str, CaptionDataset] = {}
        splits: dict[str, list[str]] = {split: [] for split in SPLITS}
        scored = self.scored or list(self.sources)
        for name, source in self.sources.items():
            with naming_source(name):
                opened[name] = _reader(source).open(data)
                splits["train"] += _named(name, opened[name].split("train")) * source.get("repeat", 1)
        for name in scored:
            with naming_source(name):
                splits["dev"] += _named(name, opened[name].split("dev"))
        if all(opened[name].splits.get("test") for name in scored):
            splits["test"] = [image for name in scored for image in _named(name, opened[name].split("test"))]
        captions = _joined({name: dataset.captions for name, dataset in opened.items()})
        if self.max_sentence_uses:
            trained_on = {image: captions[image] for image in splits["train"]}
            captions |= limit_sentence_uses(trained_on, self.max_sentence_uses)
        return CaptionDataset(
            captions,
            splits,
            JoinedPhotographs({name: dataset.photographs for name, dataset in opened.items()}),
            [
                Issue(kind, f"source {name}: {where}")
                for name, dataset in opened.items()
                for kind, where in dataset.issues
            ],
            _joined({name: dataset.things for name, dataset in opened.items()}),
            source_weights={name: source.get("weight", 1.0) for name, source in self.sources.items()},
        )

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [entry for source in self.sources.values() for entry in _reader(source).provenance]


def _named(source: str, images: Iterable[str]) -> list[str]:
    return [f"{source}/{image}" for image in images]


def _joined(of_sources: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Sequence[str]]:
    return {f"{source}/{image}": texts for source, own in of_sources.items() for image, texts in own.items()}


def limit_sentence_uses(captions: Mapping[str, Sequence[str]], limit: int) -> dict[str, list[str]]:
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


def _check_source(where: str, name: Any, source: Any) -> None:
    if not isinstance(name, str) or "/" in name:
        raise ValueError(f"{where}: a source's name is a word without a slash")
    if not isinstance(source, dict) or not source.keys() <= {"dataset", "options", "repeat", "weight"}:
        raise ValueError(f"{where}: expected dataset, options, repeat and weight, found {source!r}")
    kind, repeat, weight = source.get("dataset"), source.get("repeat", 1), source.get("weight", 1.0)
    known = [name for name in DATASETS if name != "mixture"]  # a list, because kind may be of any type
    if kind not in known:
        raise ValueError(f"{where}: dataset must be one of {', '.join(known)}, not {kind!r}")
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 0:
        raise ValueError(f"{where}: repeat must be a whole number, not {repeat!r}")
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < math.inf:
        raise ValueError(f"{where}: weight must be a positive number, not {weight!r}; repeat: 0 leaves a source out")
    try:
        check_options(kind, source.get("options") or {}, f"{where}: options")
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _reader(source: dict[str, Any]) -> DatasetReader:
    return DATASETS[source["dataset"]](**source.get("options") or {})


DATASETS: dict[str, type[DatasetReader]] = {
    "flickr8k": Flickr8k,
    "folder": Folder,
    "table": Table,
    "coco": Coco,
    "coco_photographs": CocoPhotographs,
    "looked_at": LookedAt,
    "mixture": Mixture,
}
"""By name in experiment files."""
OWN_DATA = frozenset({"folder", "table"})
"""Those of the user's own pictures."""


TRAINED_ON = "captions_trained_on"
"""Key of a captioner's record: :func:`provenance` of its data."""


def check_options(dataset: str, options: Any, where: str) -> None:
    """Check the options of a data set, a plain dataclass, as an experiment file is checked.

    Raises:
        ConfigError: an unknown or missing option, or a value that is not allowed; the message begins with ``where``.
    """
    kind = pydantic.dataclasses.dataclass(DATASETS[dataset], frozen=True, config=FORBID_UNKNOWN_KEYS)
    build_config(kind, options, where)


def open_dataset(config: DataConfig, data: Path) -> CaptionDataset:
    """Open the data set of an experiment.

    Raises:
        DataError: the data is missing or malformed.
    """
    return DATASETS[config.dataset](**config.options).open(data)


def has_own_data(config: DataConfig) -> bool:
    """Return whether an experiment has the user's own pictures, alone or in a mixture."""
    kinds = {config.dataset}
    if config.dataset == "mixture":
        kinds = {source["dataset"] for source in config.options["sources"].values()}
    return not kinds.isdisjoint(OWN_DATA)


def provenance(config: DataConfig) -> list[dict[str, str]]:
    """Collect name and terms of the data sets of an experiment, for the manifest of its model."""
    return DATASETS[config.dataset](**config.options).provenance


def provenance_of_record(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """Collect name and terms of the data sets whose captions a trained captioner has learnt.
    ``record``: of the captioner. One without :data:`TRAINED_ON` is by an earlier version, whose data sets and options
    may be unknown.
    """
    if TRAINED_ON in record:
        return list(record[TRAINED_ON])
    try:
        return provenance(build_config(DataConfig, record["experiment"]["data"], "record", ignore_unknown_keys=True))
    except (ConfigError, KeyError, TypeError, ValueError):
        return [
            {"name": f"data of the run {record.get('name')}, by a data set of an earlier version", "terms": "unknown"}
        ]


def merge_provenance(*sources: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join lists of names and terms, with each entry once."""
    merged: list[dict[str, Any]] = []
    for source in sources:
        merged += [entry for entry in source if entry not in merged]
    return merged
