"""Measure a GPU: ``python -m benchmarks.gpu``. Not run yet: no GPU was available when it was written.

Prints one table: the result of the tests that need a GPU, images a second and idle share of both phases of training at
COCO's extent, and the time of a caption with each engine of the robot. :func:`measure_gpu` is the part of
:mod:`benchmarks.decode` that compares decoders: the published style, a CUDA graph in torch, and ONNX Runtime.
"""

import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

from benchmarks.coco_scale import DEFAULT
from benchmarks.generated_data import DataSize, generated_data
from benchmarks.timing import measure
from benchmarks.torch_decoders import PublishedStyle, ReorderedCache, search_to_the_end
from benchmarks.training import measured_phases, new_trainer, on_data, seconds_per_step
from smart_caption_ros.captioning import Captioner as BundleCaptioner
from smart_caption_ros.engines import EngineError, EngineReport, available_engines, create_engine
from training.command_line import run_command
from training.engine.distributed import DeviceError, choose_device
from training.engine.precision import choose_precision
from training.engine.trainer import Trainer
from training.errors import ConfigError
from training.models.captioner import Captioner, Visual
from training.models.smart import Smart
from training.paths import CHECKOUT

ENGINES = ("onnxruntime-cuda", "onnxruntime-tensorrt", "tensorrt")
_SETTLING_STEPS = 20
_PROFILED_STEPS = 10


def gpu(
    config: Annotated[Path, typer.Argument(help="Experiment file on stored features.")] = DEFAULT,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps of each phase.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="Captions of each engine.")] = 50,
) -> None:
    """Measure this machine's GPU and print one table: tests, training, and captions by engine."""
    card = choose_device("cuda")
    rows = {"tests that need a GPU": gpu_tests(), **training_rows(config, card, steps), **engine_rows(rounds)}
    table = Table("measurement", "result", title=torch.cuda.get_device_name(card))
    for name, result in rows.items():
        table.add_row(name, result)
    Console().print(table)


def main() -> int:
    return run_command(gpu, "python -m benchmarks.gpu", (ConfigError, DeviceError))


def gpu_tests() -> str:
    """Run the tests that need a GPU, and return pytest's last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "needs_gpu", "tests"]
    said = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True).stdout.strip().splitlines()
    return said[-1] if said else "pytest said nothing"


def training_rows(config: Path, card: torch.device, steps: int) -> dict[str, str]:
    """Measure images a second of each phase of an experiment, and the share of the time in which the GPU is idle."""
    rows = {}
    batches = steps + _SETTLING_STEPS + 2
    phases = measured_phases(config)
    images = max(experiment.phases[0].images_per_batch * batches for experiment in phases.values())
    with generated_data(DataSize(images, 10_000, 50, 2048), 0, photographs=False) as (data, section):
        for kind, experiment in phases.items():
            precision = choose_precision(experiment, card).precision
            chosen = replace(on_data(experiment, section), precision=precision, checkpoint_minutes=1e6)
            step_s = seconds_per_step(new_trainer(chosen, data, card).run, _SETTLING_STEPS, steps, card)
            speed = chosen.phases[0].images_per_batch / step_s
            idle = idle_share(new_trainer(chosen, data, card), card)
            rows[f"{kind}, {precision}"] = f"{speed:.0f} images (or pairs) a second, idle {idle:.0%} of the time"
    return rows


def idle_share(trainer: Trainer, card: torch.device) -> float:
    """Measure the share of the time of some steps in which no kernel runs."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        step_s = seconds_per_step(trainer.run, _SETTLING_STEPS, _PROFILED_STEPS, card)
    busy = sum(entry.self_device_time_total for entry in profiled.key_averages()) / 1e6
    steps = 1 + _SETTLING_STEPS + _PROFILED_STEPS
    return max(0.0, 1 - busy / (steps * step_s))


def engine_rows(rounds: int) -> dict[str, str]:
    """Time a caption of the default bundle by each engine that uses a GPU."""
    reports = {report.name: report for report in available_engines()}
    frame = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
    rows = {}
    for name in ENGINES:
        row = f"caption, {name}"
        if not reports[name].available:
            rows[row] = f"not available: {reports[name].detail}"
            continue
        try:
            times = measure({name: BundleCaptioner.from_bundle(engine=name).caption}, [frame], rounds)
            rows[row] = f"{times[name]['wall_ms_median']:.1f} ms"
        except EngineError as error:
            rows[row] = f"failed: {error}"
    return rows


def measure_gpu(
    model: Smart, visual: Visual, beam_size: int, max_words: int, graph: Path, rounds: int
) -> dict[str, Any]:
    """Measure milliseconds a caption of one image.

    Args:
        visual: of one image, with a mask, on the CPU.
        graph: the static form for ONNX Runtime.
    """
    card = torch.device("cuda")
    with torch.inference_mode():
        smart = copy.deepcopy(model).to(card)
        on_card = Visual(visual.tokens.to(card), None if visual.mask is None else visual.mask.to(card))

    def searching(captioner: Captioner) -> Callable[[], object]:
        return lambda: search_to_the_end(captioner, on_card, beam_size, max_words)

    variants: dict[str, Callable[[], object]] = {
        "published_style": searching(PublishedStyle(smart)),
        "torch_kv_cache": searching(ReorderedCache(smart)),
        "torch_cuda_graph": captured(searching(ReorderedCache(smart))),
    }
    reports: dict[str, EngineReport] = {report.name: report for report in available_engines()}
    if reports["onnxruntime-cuda"].available:
        loaded = create_engine("onnxruntime-cuda").load(graph)
        assert visual.mask is not None
        inputs = {"tokens": visual.tokens.numpy(), "token_mask": visual.mask.numpy()}
        variants["onnxruntime_cuda"] = lambda: loaded.run(inputs)
    taken = {name: _wall_ms(run, rounds) for name, run in variants.items()}
    return {
        "card": torch.cuda.get_device_name(card),
        "wall_ms_median": taken,
        "not_run": {name: report.detail for name, report in reports.items() if not report.available},
    }


def captured(run: Callable[[], object]) -> Callable[[], object]:
    """Capture the work of ``run`` as a CUDA graph; a replay overwrites the results of the one before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):  # allocations and the libraries' choice of kernels, which a capture may not contain
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.inference_mode():
        found = run()

    def replay() -> object:
        graph.replay()
        return found

    return replay


def _wall_ms(run: Callable[[], object], rounds: int) -> float:
    run()
    taken = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - started) * 1e3)
    return round(statistics.median(taken), 4)


if __name__ == "__main__":
    sys.exit(main())
