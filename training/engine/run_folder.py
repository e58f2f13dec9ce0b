"""The files of a run's folder."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from smart_caption_ros.files import check_output, write_text_atomically
from training.checkpoint import load_checkpoint
from training.configs.parsing import build_config
from training.configs.schema import ExperimentConfig, FeaturesConfig
from training.errors import CheckpointError, ConfigError
from training.paths import CHECKOUT

CHECKPOINT = "checkpoint.safetensors"
"""Weights, state of the optimizer and progress of the run."""
BEST = "best.safetensors"
"""The captioner after the epoch with the best dev CIDEr."""
LOG = "log.jsonl"
"""A JSON object for each epoch."""
_EXPERIMENT = "experiment.json"
"""The experiment that the folder belongs to."""
_COMPUTE_OPTIONS = re.compile(
    r"compile|checkpoint_minutes|log_every|precision|evaluation\.images_per_batch|phases\.\d+\.accumulate"
)
"""Keys that may change when a run is resumed, because the result is the same but for rounding."""


def epoch_file(phase: str, epoch: int) -> str:
    """Return the name of the file with the weights after an epoch (from 1) of a phase."""
    return f"{phase}-{epoch}.safetensors"


def claim_folder(folder: Path, config: ExperimentConfig) -> None:
    """Make the folder of a run, which belongs to the first experiment that leaves a checkpoint in it.

    Raises:
        ConfigError: the folder belongs to another experiment.
        OutputError: the run starts from a file that it would replace.
    """
    for name in (BEST, CHECKPOINT):
        check_output(folder / name, [CHECKOUT / path for path in (config.start_from, config.backbone) if path])
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / CHECKPOINT).exists():
        write_text_atomically(folder / _EXPERIMENT, json.dumps(asdict(config), indent=2))
    elif (differing := _differing_keys(folder, config)) is None or differing:
        keys = f", which differs in {', '.join(differing)}" if differing else ""
        raise ConfigError(f"{folder} holds a run of another experiment{keys}; give another --run folder or remove it")


def is_finished(folder: Path, config: ExperimentConfig) -> bool:
    """Return whether the folder has a run of this experiment whose phases are all finished.

    Raises:
        CheckpointError: the checkpoint cannot be read.
    """
    path = folder / CHECKPOINT
    if not path.exists() or _differing_keys(folder, config) != []:
        return False
    _, state = load_of_run(path)
    return bool(state["phase"] == len(config.phases))


def load_of_run(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file that the run itself has written: its tensors and state.

    Raises:
        CheckpointError: it cannot be read; says that it may be removed.
    """
    try:
        return load_checkpoint(path)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; remove it to start afresh") from None


def _differing_keys(folder: Path, config: ExperimentConfig) -> list[str] | None:
    """Name the keys by which the experiment of a folder differs; None where there is no readable one.

    Experiments are compared, not texts: an option that did not exist when the run began has its default.
    """
    try:
        raw = json.loads((folder / _EXPERIMENT).read_text(encoding="utf-8"))
        first = build_config(ExperimentConfig, raw, str(folder), ignore_unknown_keys=True)
    except (OSError, ConfigError, ValueError, RecursionError):
        return None
    # The options of features that are not given do not count.
    comparable = [
        replace(experiment, features=experiment.features or FeaturesConfig()) for experiment in (first, config)
    ]
    before, now = (_flat(asdict(experiment)) for experiment in comparable)
    differing = (key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    return sorted(key for key in differing if not _COMPUTE_OPTIONS.fullmatch(key))


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """List the values in nested objects and lists by their paths, e.g. ``phases.0.epochs``."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not entries:
        return {path: value}
    return {place: leaf for key, own in entries for place, leaf in _flat(own, f"{path}.{key}".lstrip(".")).items()}
