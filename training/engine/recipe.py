"""Recipes: several runs in sequence, and the average of their weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.configs.schema import ExperimentConfig, RecipeConfig
from training.engine.experiment import parse_experiment
from training.engine.joining import average_captioners
from training.engine.run_folder import BEST, epoch_file
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import ConfigError
from training.paths import CHECKOUT

REFERENCE = "run:"
"""Prefix of a path that stands for the result of a run of the same recipe."""


@dataclass(frozen=True)
class PlannedRun:
    """A run of a recipe."""

    config: ExperimentConfig
    folder: Path
    saved_epochs: frozenset[tuple[str, int]]
    """Phase and epoch (from 1) of the weights that the average needs."""

    @property
    def result(self) -> Path:
        """File of the trained model."""
        return self.folder / BEST


class Recipe:
    """The runs of a recipe in their order, each with a folder of its own."""

    def __init__(self, config: RecipeConfig, folder: Path, where: str) -> None:
        """
        Args:
            folder: folder of the recipe; ``folder/NAME`` is that of the run ``NAME``.
            where: begins error sentences, e.g. the file's name.

        Raises:
            ConfigError: a run is malformed, or a reference is to no run before it.
        """
        self.config, self.folder = config, folder
        self.runs: list[PlannedRun] = []
        for index, raw in enumerate(config.runs):
            self.runs.append(self._plan(raw, f"{where}: runs[{index}]"))
        self._check_average(where)

    @property
    def result(self) -> Path:
        """File of the average, or of the last run's model if nothing is averaged."""
        return self.folder / f"{self.config.name}.safetensors" if self.config.average else self.runs[-1].result

    def average(self) -> None:
        """Average the models that the recipe names and write the result; all runs must be finished.

        Raises:
            CheckpointError: the weights of an epoch are missing or malformed, or the models cannot be averaged.
        """
        if self.config.average:
            files = [
                self._run(member.run).folder / epoch_file(member.phase, member.epoch) for member in self.config.average
            ]
            average = average_captioners({str(file): TrainedCaptioner.load(file) for file in files})
            average.record["name"] = self.config.name
            average.save(self.result)

    def _plan(self, raw: dict[str, Any], where: str) -> PlannedRun:
        config = parse_experiment(_replace_paths(raw, lambda path: self._resolve(path, where)), where)
        if config.name in (run.config.name for run in self.runs):
            raise ConfigError(f"{where}: name: two runs are named {config.name!r}")
        saved = frozenset((member.phase, member.epoch) for member in self.config.average if member.run == config.name)
        return PlannedRun(config, self.folder / config.name, saved)

    def _resolve(self, path: str, where: str) -> str:
        """Return the result file of the run that a reference names, relative to the checkout if it is below it."""
        name = path.removeprefix(REFERENCE)
        if name not in (run.config.name for run in self.runs):
            known = ", ".join(run.config.name for run in self.runs) or "none"
            raise ConfigError(f"{where}: {path}: no such run before this one; there is {known}")
        result = self._run(name).result.resolve()
        return str(result.relative_to(CHECKOUT) if result.is_relative_to(CHECKOUT) else result)

    def _run(self, name: str) -> PlannedRun:
        return next(run for run in self.runs if run.config.name == name)

    def _check_average(self, where: str) -> None:
        epochs = {(run.config.name, phase.name): phase.last_epoch for run in self.runs for phase in run.config.phases}
        for index, member in enumerate(self.config.average):
            last = epochs.get((member.run, member.phase), 0)
            if not 1 <= member.epoch <= last:
                raise ConfigError(
                    f"{where}: average[{index}]: there is no epoch {member.epoch} of a phase {member.phase!r} "
                    f"in a run {member.run!r}"
                )


def _replace_paths(value: Any, resolve: Callable[[str], str]) -> Any:
    """Copy keys and values, and replace every reference to a run by a path."""
    if isinstance(value, dict):
        return {key: _replace_paths(item, resolve) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_paths(item, resolve) for item in value]
    return resolve(value) if isinstance(value, str) and value.startswith(REFERENCE) else value
