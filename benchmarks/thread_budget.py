"""Measure what the threads of captioning take from another process on two cores.

    python -m benchmarks.thread_budget [--bundle FOLDER] [--json FILE] [--quick]

A busy process computes on one thread without pause. Beside it run, one after the other and in turns:

- a captioner with two threads and ONNX Runtime's thread pools in four settings (`thread_pools.py`), alone and beside
  the busy process;
- the caption node with one and with two threads, beside the busy process.

All are limited to two cores. The figures: captions per second, time and CPU time of a caption, for the node also the
age of its captions, and the work that the busy process does beside them, compared with its work alone. Needs ROS 2 and
the built messages.
"""

import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import cv2
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.environment import describe_environment, report
from benchmarks.node import NoCaptionError, Settings, measure_node
from benchmarks.thread_pools import POOLS, BusyProcess, caption_in_process
from smart_caption_ros.captioning import BundleError, EngineError
from smart_caption_ros.measuring.agreement import golden_frames
from training.command_line import JsonOption, run_command

_CORES, _THREADS = 2, 2
_QUICK_SECONDS = 1.0


def thread_budget(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    rate: Annotated[float, typer.Option(min=0.1, max=240.0, help="Images per second.")] = 5.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 8.0,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each setting.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Measure each setting once, for a second.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Measure what the threads of captioning take from another process on two cores.

    Needs ROS 2 and the built messages.
    """
    if quick:
        seconds, rounds = _QUICK_SECONDS, 1
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])  # inherited by all processes
    found: list[dict[str, Any]] = []
    with BusyProcess() as busy:
        for turn in range(rounds):
            print(f"measuring: round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
            found += _round(busy, bundle, rate, seconds)
    for pools in POOLS:
        for _ in range(rounds):
            run = caption_in_process(pools, bundle, _THREADS, rate, seconds, None)
            found.append({"setting": f"{pools}, {_THREADS} threads", "beside": "nothing", **run})
    result: dict[str, Any] = {
        **describe_environment(seed=0),
        "cores": _CORES,
        "rate_hz": rate,
        "seconds": seconds,
        "rounds": rounds,
        "runs": found,
        "medians": medians_of(found),
    }
    report(result, json_file)
    Console(stderr=True, width=None if sys.stderr.isatty() else 120).print(table_of(result["medians"]))


def main() -> int:
    return run_command(
        thread_budget, "python -m benchmarks.thread_budget", (BundleError, EngineError, NoCaptionError, EOFError)
    )


def medians_of(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the medians of the figures of each setting over its rounds."""
    found = []
    for setting, beside in dict.fromkeys((run["setting"], run["beside"]) for run in runs):
        same = [run for run in runs if (run["setting"], run["beside"]) == (setting, beside)]
        figures = {
            "work_ms": [run["work_ms"]["median"] for run in same],
            "age_ms": [run["latency_ms"]["median"] for run in same if "latency_ms" in run],
            "cpu_ms_per_caption": [run["cpu_ms_per_caption"] for run in same],
            "busy_share": [run["busy_share"] for run in same if "busy_share" in run],
        }
        known = {name: round(median(values), 3) for name, values in figures.items() if values}
        found.append({"setting": setting, "beside": beside, **known})
    return found


def table_of(medians: list[dict[str, Any]]) -> Table:
    """Return the medians as a table."""
    table = Table("setting", "beside", "ms/caption", "age ms", "CPU ms/caption", "work of the busy process",
                  box=None, pad_edge=False)  # fmt: skip
    for each in medians:
        share = f"{100 * each['busy_share']:.0f} % of alone" if "busy_share" in each else ""
        age = f"{each['age_ms']:.0f}" if "age_ms" in each else ""
        figures = (f"{each['work_ms']:.1f}", age, f"{each['cpu_ms_per_caption']:.1f}", share)
        table.add_row(each["setting"], each["beside"], *figures)
    return table


def _round(busy: BusyProcess, bundle: Path | None, rate_hz: float, seconds: float) -> list[dict[str, Any]]:
    """Measure every setting beside the busy process, and that one alone before and after."""
    alone = [busy.units_per_s(seconds / 2)]
    runs = []
    for pools in POOLS:
        run = caption_in_process(pools, bundle, _THREADS, rate_hz, seconds, busy)
        runs.append({"setting": f"{pools}, {_THREADS} threads", **run})
    with tempfile.TemporaryDirectory(prefix="smart_caption_benchmark_") as folder:
        for number, frame in enumerate(golden_frames(4, 640, 480)):
            cv2.imwrite(str(Path(folder) / f"{number}.png"), frame)
        for threads in (1, 2):
            settings = Settings(bundle, "onnxruntime-cpu", threads, seconds)
            run = measure_node(Path(folder), rate_hz, settings, busy=busy)
            runs.append({"setting": f"caption node, threads {threads}", **run})
    alone.append(busy.units_per_s(seconds / 2))
    for run in runs:
        run |= {"beside": "busy process", "busy_share": round(run["busy_units_per_s"] * len(alone) / sum(alone), 3)}
    return runs


if __name__ == "__main__":
    sys.exit(main())
