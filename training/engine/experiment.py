"""Experiment files with every name in them checked: data sets, families, objectives, schedules, optimizers."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from training.configs.parsing import build_config, read_experiment_file, set_key, unknown_key
from training.configs.ranges import check_value
from training.configs.schema import ExperimentConfig, RecipeConfig
from training.data.datasets import DATASETS, check_options
from training.data.tokenizer import RULES
from training.engine.optimizers import OPTIMIZERS
from training.engine.schedules import SCHEDULES
from training.errors import ConfigError
from training.models import FAMILIES
from training.models.captioner import CaptionerConfig
from training.objectives import OBJECTIVES


def load_experiment(path: Path, assignments: Sequence[str] = ()) -> ExperimentConfig | RecipeConfig:
    """Read an experiment file: one run, or a recipe of several.
    ``assignments``: values that replace those of the file, see :func:`training.configs.parsing.set_key`.

    Raises:
        ConfigError: not YAML, an unknown or missing key, or a value that is not allowed.
    """
    raw = read_experiment_file(path)
    for assignment in assignments:
        raw = set_key(raw, assignment)
    if isinstance(raw, dict) and "runs" in raw:
        return build_config(RecipeConfig, raw, str(path))
    return parse_experiment(raw, str(path))


def load_run(path: Path) -> ExperimentConfig:
    """Read an experiment file of one run.

    Raises:
        ConfigError: as :func:`load_experiment`, or the file is a recipe.
    """
    config = load_experiment(path)
    if isinstance(config, RecipeConfig):
        raise ConfigError(f"{path}: runs: expected one experiment, found a recipe of several runs")
    return config


def parse_experiment(raw: Any, where: str) -> ExperimentConfig:
    """Build the experiment of one run from plain keys and values; a key that is not given has its default.

    Raises:
        ConfigError: as :func:`load_experiment`; the message begins with ``where``.
    """
    config = build_config(ExperimentConfig, raw, where)
    _check_names(config, where)
    return config


def _check_names(config: ExperimentConfig, where: str) -> None:
    _check_name(config.data.dataset, DATASETS, where, "data: dataset")
    _check_name(config.data.vocabulary, RULES, where, "data: vocabulary")
    check_options(config.data.dataset, config.data.options, f"{where}: data: options")
    _check_name(config.family, FAMILIES, where, "family")
    _check_model_keys(config, where)
    for index, phase in enumerate(config.phases):
        place = f"{where}: phases[{index}]"
        _check_name(phase.schedule, SCHEDULES, place, "schedule")
        _check_name(phase.optimizer.name, OPTIMIZERS, f"{place}: optimizer", "name")
        _check_name(phase.objective, OBJECTIVES, place, "objective")


def _check_model_keys(config: ExperimentConfig, where: str) -> None:
    shared = {field.name for field in fields(CaptionerConfig)}  # the data gives them
    known = [field.name for field in fields(FAMILIES[config.family].Config) if field.name not in shared]
    if unknown := [key for key in config.model if key not in known]:
        raise ConfigError(f"{where}: model: {unknown_key(unknown[0], known)}")
    types = get_type_hints(FAMILIES[config.family].Config, include_extras=True)
    for key, value in config.model.items():
        try:
            check_value(key, types[key], value)
        except ValueError as error:
            raise ConfigError(f"{where}: model: {error}") from None


def _check_name(value: Any, known: Iterable[str], where: str, key: str) -> None:
    if value not in known:
        raise ConfigError(f"{where}: {key} must be one of {', '.join(known)}, not {value!r}")
