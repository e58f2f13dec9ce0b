"""Name and terms of the data that a model was trained on, for its manifest."""

from collections.abc import Iterable, Mapping
from typing import Any

from training.configs.parsing import build_config
from training.configs.schema import DataConfig
from training.data.datasets import DATASETS


def provenance(config: DataConfig) -> list[dict[str, str]]:
    """Collect name and terms of the data sets of an experiment."""
    return DATASETS[config.dataset](**config.options).provenance


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
