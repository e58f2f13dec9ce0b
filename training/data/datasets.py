"""Data sets of captions: the registry by which experiments name them, mixtures of them, and their terms."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.configs.parsing import build_config
from training.configs.schema import DataConfig
from training.data.caption_dataset import CaptionDataset, DatasetOptions
from training.data.coco_dataset import CocoOptions
from training.data.coco_photographs import CocoPhotographsOptions
from training.data.flickr8k import Flickr8kOptions
from training.data.looked_at import LookedAtOptions
from training.data.mixture import Mixture, MixtureSource, naming_source
from training.data.own_data import FolderOptions, TableOptions
from training.errors import ConfigError


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

    def open(self, data: Path) -> Mixture:
        sources = {}
        for name, source in self.sources.items():
            with naming_source(name):
                opened = _options(source).open(data)
            sources[name] = MixtureSource(opened, source.get("repeat", 1), source.get("weight", 1.0))
        return Mixture(sources, self.scored or list(sources), self.max_sentence_uses)

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [entry for source in self.sources.values() for entry in _options(source).provenance]


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


def _options(source: dict[str, Any]) -> DatasetOptions:
    return DATASETS[source["dataset"]](**source.get("options") or {})


DATASETS: dict[str, type[DatasetOptions]] = {
    "flickr8k": Flickr8kOptions,
    "folder": FolderOptions,
    "table": TableOptions,
    "coco": CocoOptions,
    "coco_photographs": CocoPhotographsOptions,
    "looked_at": LookedAtOptions,
    "mixture": MixtureOptions,
}
"""Options of the data sets by their names in experiment files."""


TRAINED_ON = "captions_trained_on"
"""Key of a captioner's record: :func:`provenance` of its data."""


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
    return not kinds.isdisjoint({"folder", "table"})


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
