"""An epoch of COCO, extrapolated from some steps on generated features: ``python -m benchmarks.coco_scale [CONFIG]``.

Captions and features have the extent of Karpathy's training split: 113,287 images, five captions each, 50 regions of
2048 float16. The features of 500 images are distinct and lie in the page cache, so reading them measures no disk.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch.profiler import ProfilerActivity, profile

from benchmarks.environment import describe_environment, report
from benchmarks.generated_data import DataSize, generated_data
from benchmarks.process_use import resident_mb
from benchmarks.training import measured_phases, new_trainer, on_data, seconds_per_step
from training.command_line import DeviceOption, JsonOption, ThreadsOption, run_command
from training.configs.schema import ExperimentConfig
from training.engine.distributed import DeviceError, choose_device
from training.engine.precision import choose_precision
from training.errors import ConfigError
from training.paths import CHECKOUT

IMAGES = 113_287
"""Images of Karpathy's training split."""
DEFAULT = CHECKOUT / "training" / "configs" / "smart_coco.yaml"
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mkldnn", "scaled_dot_product", "linear", "gemm", "cutlass")
"""Parts of the names of operators that are matrix products."""
_PROFILED_STEPS = 3


def coco_scale(
    config: Annotated[Path, typer.Argument(help="Experiment file on stored features.")] = DEFAULT,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps of each phase.")] = 500,
    settle: Annotated[int, typer.Option(min=0, help="Steps before them, not measured.")] = 10,
    images: Annotated[int, typer.Option(min=1, help="Images of the corpus.")] = IMAGES,
    regions: Annotated[int, typer.Option(min=1, help="Regions of an image.")] = 50,
    width: Annotated[int, typer.Option(min=1, help="Width of a region.")] = 2048,
    words: Annotated[int, typer.Option(min=5, help="Words of the vocabulary.")] = 10_000,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Extrapolate an epoch of each phase at COCO's extent.

    For each phase: milliseconds a step, hours an epoch, the share of the time in matrix products, and the memory of the
    process. On a CPU, time is processor time divided by the number of threads, which other load on the machine does not
    change; on a GPU it is wall time. Sampled captions have the maximum length, because nothing has been learned.
    """
    where = choose_device(device)
    if threads:
        torch.set_num_threads(threads)
    size = DataSize(images, words, regions, width)
    result: dict[str, Any] = {
        **describe_environment(0),
        "device": torch.cuda.get_device_name(where) if where.type == "cuda" else "CPU",
        "threads": torch.get_num_threads(),
        "experiment": config.stem,
        "data": asdict(size),
        "measured_steps": steps,
        "phases": {},
    }
    with generated_data(size, 0, photographs=False) as (data, section):
        for kind, experiment in measured_phases(config).items():
            print(f"benchmarks.coco_scale: {kind}", file=sys.stderr, flush=True)
            precision = choose_precision(experiment, where).precision
            experiment = replace(on_data(experiment, section), precision=precision, checkpoint_minutes=1e6)
            result["phases"][kind] = {"precision": precision, **phase_of(experiment, data, where, steps, settle)}
    report(result, json_file)


def main() -> int:
    return run_command(coco_scale, "python -m benchmarks.coco_scale", (ConfigError, DeviceError))


def phase_of(experiment: ExperimentConfig, data: Path, device: torch.device, steps: int, settle: int) -> dict[str, Any]:
    """Measure the steps of an experiment's only phase."""
    begun = time.perf_counter()
    trainer = new_trainer(experiment, data, device)
    prepared = time.perf_counter() - begun
    epoch_steps = trainer.plan.steps[0]
    measured = min(steps, epoch_steps - settle - 1)
    if device.type == "cpu":
        step_s = seconds_per_step(trainer.run, settle, measured, device, time.process_time) / torch.get_num_threads()
    else:
        step_s = seconds_per_step(trainer.run, settle, measured, device)
    memory = resident_mb()
    again = new_trainer(experiment, data, device)
    return {
        "preparation_s": round(prepared, 1),
        "step_ms": round(1e3 * step_s, 1),
        "steps_per_epoch": epoch_steps,
        "hours_per_epoch": round(epoch_steps * step_s / 3600, 2),
        "images_per_second": round(experiment.phases[0].images_per_batch / step_s, 1),
        "share_of_products": share_of_products(lambda: seconds_per_step(again.run, 1, _PROFILED_STEPS, device)),
        "memory_mb": {name: memory[name] for name in ("private", "peak")},
    }


def share_of_products(run: Callable[[], object]) -> float:
    """Measure the share of matrix products in the time of all operators."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    with profile(activities=activities) as profiled:
        run()
    spent = {
        entry.key: entry.self_device_time_total if torch.cuda.is_available() else entry.self_cpu_time_total
        for entry in profiled.key_averages()
    }
    products = sum(time for name, time in spent.items() if any(part in name.lower() for part in PRODUCTS))
    return round(products / max(1.0, sum(spent.values())), 3)


if __name__ == "__main__":
    sys.exit(main())
