"""Measure camera node and caption node in one process beside the same nodes in two processes.

    python -m benchmarks.composition [--bundle FOLDER] [--seconds 20] [--repeats 3] [--json FILE]

rclpy has no transport within a process: an image is serialised by the camera node and deserialised by the caption node
in both layouts. What one process could save is the way between the processes, and memory for a second Python. The
layouts take turns, because other work on the machine changes the figures. Needs ROS 2 and the built messages.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import cv2
import typer
import yaml

from benchmarks.environment import describe_environment, report
from benchmarks.node import CaptionListener, NoCaptionError
from benchmarks.process_use import cpu_s, resident_mb
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables
from training.command_line import JsonOption, run_command

LAYOUTS = {
    "one process": ("benchmarks.composed_node",),
    "two processes": ("smart_caption_ros.nodes.caption_command", "smart_caption_ros.nodes.camera_command"),
}
SIZE = (1920, 1080)
START_TIMEOUT_S, WARM_UP_S = 120.0, 2.0


def composition(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    rate_hz: Annotated[float, typer.Option(min=0.1, help="Rate of the camera.")] = 10.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 20.0,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements of each layout.")] = 3,
    json_file: JsonOption = None,
) -> None:
    """Measure camera node and caption node in one process beside the same nodes in two processes."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in LAYOUTS}
    for number in range(repeats):
        for name in LAYOUTS if number % 2 else reversed(LAYOUTS):
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            runs[name].append(measure(LAYOUTS[name], SIZE, rate_hz, seconds, bundle))
    result: dict[str, Any] = {
        **describe_environment(seed=0),
        "size": f"{SIZE[0]}x{SIZE[1]}",
        "rate_hz": rate_hz,
        "seconds": seconds,
        "runs": runs,
        "median": {name: {key: median(run[key] for run in each) for key in each[0]} for name, each in runs.items()},
    }
    report(result, json_file)


def measure(
    modules: Sequence[str], size: tuple[int, int], rate_hz: float, seconds: float, bundle: Path | None
) -> dict[str, float]:
    """Run the nodes for a while and measure the captions that arrive in this process.

    Args:
        modules: a process of each is started.
        size: width and height of the images in pixels.
        rate_hz: rate of the camera node.
        seconds: duration.
        bundle: bundle of the caption node; None for the bundle that ships.

    Returns:
        ``captions_per_second``; medians of ``waiting_ms``, from the stamp of an image to the beginning of the work on
        it, and ``work_ms``; ``cpu_ms_per_caption`` and ``resident_mb`` of all processes together.

    Raises:
        NoCaptionError: the nodes published no caption in time.
    """
    with tempfile.TemporaryDirectory(prefix="smart_caption_benchmark_") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "images").mkdir()
        for number, frame in enumerate(golden_frames(4, *size)):
            cv2.imwrite(str(folder / "images" / f"{number}.png"), frame)
        parameters: dict[str, Mapping[str, object]] = {
            "camera_node": {"source": str(folder / "images"), "rate_hz": rate_hz},
            "caption_node": {"bundle": str(bundle or ""), "engine": "onnxruntime-cpu", "threads": 1, "coverage": False},
        }
        file = folder / "parameters.yaml"
        file.write_text(yaml.safe_dump({f"/{node}": {"ros__parameters": each} for node, each in parameters.items()}))
        stack.enter_context(environment(ros_variables(folder / "logs")))
        listener = stack.enter_context(CaptionListener.opened())
        processes = [
            stack.enter_context(NodeProcess(module, ["--params-file", str(file)], folder / f"{module}.log"))
            for module in modules
        ]
        if not listener.spin(START_TIMEOUT_S, until_first=True):
            logs = "\n".join(process.log_tail() for process in processes)
            raise NoCaptionError(f"no caption after {START_TIMEOUT_S:g} s\n{logs}")
        listener.spin(WARM_UP_S)
        listener.arrived.clear()
        before_s = sum(cpu_s(process.pid) for process in processes)
        listener.spin(seconds)
        used_s = sum(cpu_s(process.pid) for process in processes) - before_s
        timings = [caption.timing for caption, _ in listener.arrived]
        if not timings:
            raise NoCaptionError(f"no caption in {seconds:g} s")
        return {
            "captions_per_second": round(len(timings) / seconds, 2),
            "waiting_ms": round(median(timing.age_at_start_ms for timing in timings), 2),
            "work_ms": round(median(timing.total_ms for timing in timings), 2),
            "cpu_ms_per_caption": round(1e3 * used_s / len(timings), 1),
            "resident_mb": round(sum(resident_mb(process.pid)["resident"] for process in processes), 1),
        }


def main() -> int:
    return run_command(composition, "python -m benchmarks.composition", (NoCaptionError,))


if __name__ == "__main__":
    sys.exit(main())
