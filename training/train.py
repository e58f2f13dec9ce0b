"""``python -m training.train CONFIG``: train the run or the recipe of an experiment file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from training.command_line import FAILED, INTERRUPTED, DeviceOption, ThreadsOption, report_error, run_command
from training.configs.schema import DataConfig, ExperimentConfig, RecipeConfig
from training.data.checking import check_data, count_kinds
from training.engine.distributed import DeviceError, OtherProcessError, Processes, choose_device
from training.engine.experiment import load_experiment
from training.engine.recipe import Recipe
from training.engine.reporting import summary
from training.engine.run_folder import is_finished
from training.engine.trainer import Trainer
from training.errors import BackboneError, CheckpointError, ConfigError, DataError, TrainingError
from training.paths import CHECKOUT, data_folder

USER_ERRORS = (BackboneError, CheckpointError, ConfigError, DataError, DeviceError, TrainingError)
"""Errors whose message is a sentence for the user."""
RUNS = CHECKOUT / "runs"
CACHE = RUNS / "features"


def train(
    config: Annotated[
        Path, typer.Argument(help="Experiment file, e.g. training/configs/smart_flickr8k.yaml.", show_default=False)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Keys to set, e.g. phases.0.epochs=1.", show_default=False),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the run (default: runs/<name of the experiment>).")
    ] = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read all data, list what is wrong with it, and do not train.")
    ] = False,
) -> int:
    """Train the run, or the runs, of an experiment file. The same command resumes a run that was stopped.

    To train in several processes, start the command by torchrun:
    torchrun --nproc-per-node 4 -m training.train CONFIG
    """
    if check:
        return _check(config, settings or ())
    if threads:
        torch.set_num_threads(threads)
    plan: ExperimentConfig | Recipe | None = None
    chosen, problem = torch.device("cpu"), None
    try:
        plan, chosen = _plan(config, settings or (), run), choose_device(device)
    except (ConfigError, DeviceError) as error:
        problem = error
    # Only connected processes can agree on one of them to report the problem.
    processes = Processes(chosen)
    status = _report_errors(processes, plan, problem, run)
    processes.close()
    return status


def _check(file: Path, settings: Sequence[str]) -> int:
    """List everything that is wrong with the data of an experiment; the exit status is 1 if anything is."""
    found = False
    try:
        plan = _plan(file, settings, None)
        configs = [run.config for run in plan.runs] if isinstance(plan, Recipe) else [plan]
        checked: list[DataConfig] = []
        for config in configs:
            if config.data in checked:
                continue
            checked.append(config.data)
            images, issues = check_data(config.data, data_folder(), pictures=not config.features)
            for issue in sorted(issues):
                print(f"{issue.kind}: {issue.where}")
            parts = ", ".join(f"{len(set(own))} {split}" for split, own in images.items())
            print(f"{config.name}: {parts} pictures; {count_kinds(issues)}")
            found = found or bool(issues)
    except USER_ERRORS as error:
        report_error(error)
        return FAILED
    return FAILED if found else 0


def _plan(file: Path, settings: Sequence[str], run: Path | None) -> ExperimentConfig | Recipe:
    config = load_experiment(file, settings)
    return Recipe(config, run or RUNS / config.name, str(file)) if isinstance(config, RecipeConfig) else config


def _report_errors(
    processes: Processes, plan: ExperimentConfig | Recipe | None, problem: Exception | None, run: Path | None
) -> int:
    """Train, report an error in one sentence, and return the exit status."""
    try:
        with processes.fail_in_all():
            if problem is not None:
                raise problem
        assert plan is not None
        if isinstance(plan, Recipe):
            _train_recipe(plan, processes)
        else:
            _train_run(plan, run or RUNS / plan.name, processes)
    except USER_ERRORS as error:
        report_error(error)
        return FAILED
    except OtherProcessError:
        return FAILED
    except RuntimeError as error:
        if not processes.is_lost_connection(error):
            raise
        report_error("another process has ended; the same command resumes from the last checkpoint")
        return FAILED
    except KeyboardInterrupt:
        if processes.is_first:
            print("stopped; the same command resumes from the last checkpoint", file=sys.stderr)
        return INTERRUPTED
    return 0


def _train_run(
    config: ExperimentConfig, folder: Path, processes: Processes, saved_epochs: frozenset[tuple[str, int]] = frozenset()
) -> None:
    trainer = Trainer(config, data_folder(), folder, CACHE, processes, saved_epochs)
    trainer.run()
    if processes.is_first:
        Console().print(summary(config, trainer.progress.history))
        print(f"best model by dev CIDEr: {trainer.result}")


def _train_recipe(recipe: Recipe, processes: Processes) -> None:
    for number, run in enumerate(recipe.runs, 1):
        if processes.from_first(lambda run=run: is_finished(run.folder, run.config)):  # type: ignore[misc]
            continue
        if processes.is_first:
            print(f"run {number} of {len(recipe.runs)}: {run.config.name}", flush=True)
        _train_run(run.config, run.folder, processes, run.saved_epochs)
    processes.from_first(recipe.average)
    if processes.is_first:
        print(f"{recipe.config.name}: {recipe.result}")


def main() -> int:
    return run_command(train, "python -m training.train")


if __name__ == "__main__":
    sys.exit(main())
