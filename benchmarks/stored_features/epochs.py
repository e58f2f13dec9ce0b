"""Measurements of epochs; each function runs in a process of its own, so that its memory is its own.

The first epoch of a process is read from the disk, because the files were removed from the page cache before. The
second one is read from the page cache, if they fit in memory. ``megabytes_from_disk`` says what happened.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.process_use import resident_mb
from benchmarks.stored_features.alternatives import ALTERNATIVES, read_epoch
from benchmarks.stored_features.generated_store import Extent
from benchmarks.stored_features.page_cache import bytes_from_disk, evict, read_sequentially
from training.configs.parsing import build_config
from training.configs.schema import ExperimentConfig
from training.data.loading import load_ahead
from training.engine.captioning import Captioning
from training.engine.distributed import Processes

OBJECTIVES = ("cross_entropy", "self_critical")


@dataclass(frozen=True)
class Measurement:
    """Settings that all measurements have in common."""

    folder: Path
    """Data folder, with the store in ``store``, alternatives in folders of their names, and ``cache``."""
    extent: Extent
    """Extent of the features that are read in an epoch."""
    data: Mapping[str, Any]
    """The section ``data`` of the experiment."""
    batch: int
    """Images of a batch."""
    threads: int
    """Threads or worker processes that read."""
    seed: int
    """Of the orders of the images."""


def start(setting: Measurement) -> tuple[Captioning, dict[str, float]]:
    """Prepare training as the trainer does, and measure the seconds of each part."""
    config = build_config(
        ExperimentConfig,
        {
            "name": "large-data",
            "precision": "fp32",
            "features": {"store": "store"},
            "model": {"d_model": 32, "heads": 2, "d_ff": 32, "memory_slots": 2},
            "data": dict(setting.data),
            "phases": [
                {
                    "name": objective,
                    "objective": objective,
                    "epochs": 1,
                    "learning_rate": 1e-3,
                    "images_per_batch": setting.batch,
                }
                for objective in OBJECTIVES
            ],
        },
        "large-data",
    )
    seconds, before = {}, time.perf_counter()
    processes = Processes(torch.device("cpu"))
    captioning = Captioning(config, setting.folder, setting.folder / "cache", processes)
    seconds["data_and_model"] = time.perf_counter() - before
    for phase in reversed(range(len(OBJECTIVES))):  # cross-entropy last: it is the objective of the epochs
        before = time.perf_counter()
        captioning.begin_phase(phase)
        seconds[OBJECTIVES[phase]] = time.perf_counter() - before
    return captioning, {name: round(value, 2) for name, value in seconds.items()}


def measure_store(setting: Measurement) -> dict[str, Any]:
    """Measure epochs in random order through the trainer's inputs and its reading threads, and the memory.

    Returns:
        ``start_seconds``; ``speeds`` of ``cold`` and ``warm`` epochs of features, and of ``warm_with_captions``;
        ``memory_mb`` before and after an epoch and after all.
    """
    torch.set_num_threads(1)
    memory = {"imported": resident_mb()}
    evict(_files(setting.folder / "store"))
    captioning, start_seconds = start(setting)
    random = np.random.default_rng(setting.seed)

    def features() -> None:
        with closing(_ahead(setting, random, captioning.inputs.training_batch)) as batches:
            for batch in batches:
                captioning.inputs.visual(batch)

    def features_and_captions() -> None:
        with closing(_ahead(setting, random, captioning.read)) as batches:
            for batch in batches:
                captioning.inputs.visual(batch.visual)

    memory["before_an_epoch"] = resident_mb()
    speeds = {"cold": _measure(setting, features)}
    memory["after_an_epoch"] = resident_mb()
    speeds["warm"] = _measure(setting, features)
    speeds["warm_with_captions"] = _measure(setting, features_and_captions)
    memory["after_three_epochs"] = resident_mb()
    return {"start_seconds": start_seconds, "speeds": speeds, "memory_mb": memory}


def measure_alternative(setting: Measurement, name: str) -> dict[str, dict[str, float]]:
    """Measure ``cold`` and ``warm`` epochs in random order of an alternative layout."""
    torch.set_num_threads(1)
    folder, random = setting.folder / name, np.random.default_rng(setting.seed)
    evict(_files(folder))
    dataset = ALTERNATIVES[name][1](folder, setting.extent.images)

    def epoch() -> None:
        read_epoch(dataset, random.permutation(setting.extent.images), setting.batch, setting.threads)

    return {"cold": _measure(setting, epoch), "warm": _measure(setting, epoch)}


def measure_sequential_read(setting: Measurement) -> dict[str, dict[str, float]]:
    """Measure ``cold`` and ``warm`` reading of the store's arrays from beginning to end, as files."""
    paths = _files(setting.folder / "store")
    evict(paths)
    return {state: _measure(setting, lambda: read_sequentially(paths)) for state in ("cold", "warm")}


def _files(folder: Path) -> list[Path]:
    """List the files of features and boxes."""
    return sorted(path for path in folder.iterdir() if path.suffix != ".json")


def _ahead(
    setting: Measurement, random: np.random.Generator, read: Callable[[np.ndarray], Any]
) -> Generator[Any, None, None]:
    """Read the batches of an epoch ahead, as the trainer does."""
    order = random.permutation(setting.extent.images)
    keys = (order[first : first + setting.batch] for first in range(0, len(order), setting.batch))
    return load_ahead(read, keys, setting.threads)


def _measure(setting: Measurement, epoch: Callable[[], None]) -> dict[str, float]:
    """Measure the speed of an epoch, and how much of it came from the disk."""
    images, megabytes = setting.extent.images, setting.extent.images * setting.extent.bytes_per_image / 1e6
    from_disk, before = bytes_from_disk(), time.perf_counter()
    epoch()
    seconds = time.perf_counter() - before
    return {
        "images_per_second": round(images / seconds),
        "megabytes_per_second": round(megabytes / seconds),
        "megabytes_from_disk": round((bytes_from_disk() - from_disk) / 1e6),
    }
