"""Measure start and reading speed of training on large data: ``python -m benchmarks.large_data``.

For each number of images, captions and a feature store are generated. Then, in fresh processes and in turns:

- *store*: epochs in random order through the trainer's inputs and its reading threads: the first one from the disk
  (*cold*), the second one from the page cache (*warm*), and one with captions;
- *sequential read* of the same files from beginning to end, cold and warm;
- *alternatives* that a user would write with PyTorch's ``DataLoader`` and as many worker processes: an npz file for
  each image, M2's HDF5 layout, a memory map of one npy file.

The seconds until the first batch can be read and the memory of the process are those of the store's processes. Files
are removed from the page cache without privileges, and ``megabytes_from_disk`` says what an epoch read from the disk.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from benchmarks.environment import describe_environment, report
from benchmarks.stored_features.alternatives import ALTERNATIVES
from benchmarks.stored_features.epochs import Measurement, measure_alternative, measure_sequential_read, measure_store
from benchmarks.stored_features.generated_store import Extent, write_store
from benchmarks.training_steps.generated_data import DataSize, write_data
from training.command_line import JsonOption, run_command
from training.data.loading import loading_threads
from training.errors import DataError

T = TypeVar("T")
SPACE_FACTOR = 1.1
"""Space that is needed, in sizes of the generated features; captions and indices take the rest."""


def measure(
    images: Annotated[list[int], typer.Option(min=100, help="Numbers of images.")] = [10_000, 100_000],  # noqa: B006
    regions: Annotated[int, typer.Option(min=1, help="Regions of an image.")] = 36,
    width: Annotated[int, typer.Option(min=1, help="Width of a feature.")] = 2048,
    words: Annotated[int, typer.Option(min=5, help="Different words in the captions.")] = 10_000,
    batch: Annotated[int, typer.Option(min=1, help="Images of a batch.")] = 50,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Reading threads or worker processes (default: as in training).")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Processes of each kind, in turns; medians are reported.")] = 3,
    alternatives_up_to: Annotated[
        int, typer.Option(min=0, help="Greatest number of images for which the alternatives are measured.")
    ] = 10_000,
    folder: Annotated[
        Path | None, typer.Option(help="Folder for the generated data, on the disk to measure (default: temporary).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated data and of the orders.")] = 0,
    json_file: JsonOption = None,
) -> None:
    """Measure start and reading speed of training on large data, and its memory, beside what a user would write.

    The data is generated and deleted afterwards: 100,000 images of 36 regions of width 2048 need 16 GB for a while.
    """
    threads = threads or loading_threads(1)
    results = []
    for count in images:
        with tempfile.TemporaryDirectory(dir=folder, prefix="large-data-") as data:
            alternatives = tuple(ALTERNATIVES) if count <= alternatives_up_to else ()
            setting = Measurement(Path(data), Extent(count, regions, width), {}, batch, threads, seed)
            check_space(setting, layouts=1 + len(alternatives))
            results.append(measure_size(setting, words, rounds, alternatives))
    result = {
        **describe_environment(seed),
        "regions": regions,
        "width": width,
        "images_per_batch": batch,
        "threads": threads,
        "rounds": rounds,
        "sizes": results,
    }
    report(result, json_file)


def check_space(setting: Measurement, layouts: int) -> None:
    """Check that the generated data fits on the disk.

    Args:
        setting: folder and extent of the data.
        layouts: how often the features are stored.

    Raises:
        DataError: it does not; says how much is needed.
    """
    extent = setting.extent
    needed = SPACE_FACTOR * layouts * extent.images * extent.bytes_per_image
    free = shutil.disk_usage(setting.folder).free
    if needed > free:
        raise DataError(
            f"{setting.folder}: {extent.images} images need {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; "
            "give another --folder or fewer --images"
        )


def measure_size(setting: Measurement, words: int, rounds: int, alternatives: Sequence[str]) -> dict[str, Any]:
    """Generate data of one size and measure everything on it.

    Args:
        setting: without ``data``.
        words: different words in the captions.
        rounds: processes of each kind.
        alternatives: keys of :data:`ALTERNATIVES`.

    Returns:
        ``speeds`` of each layout and each kind of epoch, ``start_seconds`` and ``memory_mb``.
    """
    before = time.perf_counter()
    setting = generate(setting, words, alternatives)
    seconds = time.perf_counter() - before
    stores, speeds = [], []
    for _ in range(rounds):
        stores.append(in_fresh_process(measure_store, setting))
        speeds.append(
            {
                "store": stores[-1]["speeds"],
                "sequential_read": in_fresh_process(measure_sequential_read, setting),
                **{name: in_fresh_process(measure_alternative, setting, name) for name in alternatives},
            }
        )
    later = [store["start_seconds"] for store in stores[1:]]
    return {
        "images": setting.extent.images,
        "megabytes": round(setting.extent.images * setting.extent.bytes_per_image / 1e6, 1),
        "generated_in_seconds": round(seconds, 1),
        "speeds": medians(speeds),
        # The first process splits the captions into words and caches them.
        "start_seconds": {"first_run": stores[0]["start_seconds"], "later_runs": medians(later) if later else None},
        "memory_mb": medians([store["memory_mb"] for store in stores]),
    }


def generate(setting: Measurement, words: int, alternatives: Sequence[str]) -> Measurement:
    """Generate captions, the store and the alternative layouts, and return the setting with its ``data``."""
    extent, folder = setting.extent, setting.folder
    data = write_data(folder, DataSize(extent.images, words, tokens=1, token_width=1), setting.seed, photographs=False)
    # That store has shards that are links to one file; one without links is written in its place.
    shutil.rmtree(folder / "store")
    write_store(folder / "store", replace(extent, images=extent.images + 1), setting.seed)  # with the dev image
    for name in alternatives:
        (folder / name).mkdir()
        ALTERNATIVES[name][0](folder / name, extent, setting.seed)
    return replace(setting, data=data)


def medians(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compute the median of each number in nested results of the same structure."""
    return {
        key: medians([result[key] for result in results])
        if isinstance(value, Mapping)
        else round(statistics.median(result[key] for result in results), 2)
        for key, value in results[0].items()
    }


def in_fresh_process(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a new process and return its result."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> int:
    return run_command(measure, "python -m benchmarks.large_data", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
