"""Builds the trainer of a checkout whose modules may have the names of this commit or of an earlier one.

Imports nothing of ``training`` by itself, because the process may run another commit's code.
"""

import importlib
import inspect
from pathlib import Path
from typing import Any

STEPS = ("training.engine.step:GradientStep.differentiate", "training.step:GradientStep.differentiate")
"""Methods that compute a batch's gradient and return an object with its ``loss``."""
DECODERS = ("decode", "step", "decode_tree")
"""Methods of a captioner whose first argument is the words to decode: a tensor, or an object with ``words``."""


class UnknownLayoutError(Exception):
    """The checkout's training code is organised in a way that this benchmark does not know."""


def build_trainer(options: dict[str, Any], data: Path, folder: Path, device: str) -> Any:
    """Build the trainer of an experiment in this process, on the code that is first on the import path.

    Args:
        options: the experiment, as plain keys and values.
        data: data folder.
        folder: folder of the run.
        device: as in ``--device``.

    Raises:
        UnknownLayoutError: the training code has unknown names.
        Exception: an error of the training code itself, for example an unknown option.
    """
    modules = (("training.engine.trainer", _build), ("training.trainer", _build_flat))
    for name, build in modules:
        try:
            _module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
            continue
        try:
            return build(options, data, folder, device)
        except (AttributeError, ImportError, TypeError) as error:
            raise UnknownLayoutError(f"{name} has another interface than this benchmark knows ({error})") from error
    raise UnknownLayoutError(f"it has none of the modules {', '.join(name for name, _ in modules)}")


def captioner_of(trainer: Any) -> Any:
    """Return the captioner that a trainer trains."""
    return getattr(trainer, "task", trainer).trained.captioner


def _build(options: dict[str, Any], data: Path, folder: Path, device: str) -> Any:
    """Build the trainer of commits since the tasks."""
    distributed = _module("training.engine.distributed")
    config = _module("training.engine.experiment").parse_experiment(options, "experiment")
    arguments = [distributed.choose_device(device)]
    if "precision" in inspect.signature(distributed.Processes).parameters:  # before the trainer chose it
        arguments.append(config.precision)
    processes = distributed.Processes(*arguments)
    return _module("training.engine.trainer").Trainer(config, data, folder, folder / "cache", processes)


def _build_flat(options: dict[str, Any], data: Path, folder: Path, device: str) -> Any:
    """Build the trainer of commits before the tasks, whose modules are all in ``training/``."""
    engine = _module("training.engine")
    config = _module("training.config").parse_config(options, "experiment")
    processes = engine.Engine(engine.choose_device(device), config.precision)
    return _module("training.trainer").Trainer(config, data, folder, folder / "cache", processes)


def _module(name: str) -> Any:
    return importlib.import_module(name)
