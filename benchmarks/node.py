"""Measure what the caption node adds to `Captioner.caption`: a camera node and a caption node as processes over DDS.

    python -m benchmarks.node [--bundle FOLDER] [--json FILE] [--quick]

For 640x480 and 1080p at 5, 15 and 30 Hz: CPU time and time per caption, compared with the captioner called directly at
the same rate before and after, with nothing else running; captions per second; latency from the stamp of the image to
the arrival of the caption in a third process (this one); images replaced by newer ones. Needs ROS 2 and the built
messages.
"""

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import cv2
import numpy as np
import rclpy
import typer
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from smart_caption_ros.msg import Caption

from benchmarks.environment import describe_environment, report
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.measuring.benchmark import spread
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables
from training.command_line import JsonOption, run_command

SIZES, RATES_HZ = ((640, 480), (1920, 1080)), (5.0, 15.0, 30.0)
START_TIMEOUT_S = 120.0
WARM_UP_S = 2.0
QUICK_SECONDS = 3.0


class NoCaptionError(Exception):
    """The nodes did not publish a caption in time; the message has the end of their logs."""


@dataclass(frozen=True)
class Settings:
    """What all measurements have in common."""

    bundle: Path | None
    """None: the bundle that ships."""
    engine: str
    threads: int
    seconds: float
    """Duration of a measurement."""


def node(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    engine: Annotated[str, typer.Option(help="Engine that runs the bundle.")] = "onnxruntime-cpu",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 20.0,
    quick: Annotated[bool, typer.Option("--quick", help="Measure one rate alone, for three seconds.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Measure what the caption node adds to Captioner.caption, with both nodes as processes over DDS.

    Needs ROS 2 and the built messages.
    """
    settings = Settings(bundle, engine, threads, QUICK_SECONDS if quick else seconds)
    captioner = Captioner.from_bundle(bundle, engine, threads)
    rates_hz = RATES_HZ[:1] if quick else RATES_HZ
    result = {
        **describe_environment(seed=0),
        "model": captioner.model,
        "engine": captioner.engine,
        "threads": threads,
        "seconds": settings.seconds,
        "runs": [run for size in SIZES for run in measure_size(captioner, size, rates_hz, settings)],
    }
    report(result, json_file)


def main() -> int:
    return run_command(node, "python -m benchmarks.node", (BundleError, EngineError, NoCaptionError))


def measure_size(
    captioner: Captioner, size: tuple[int, int], rates_hz: tuple[float, ...], settings: Settings
) -> list[dict[str, Any]]:
    """Measure the node at every rate, and before and after it the captioner alone on the same frames at that rate.

    Args:
        captioner: the captioner to call directly.
        size: width and height of the frames in pixels.
        rates_hz: rates to measure at.
        settings: of the nodes.

    Raises:
        NoCaptionError: the nodes published no caption in time.
    """
    frames = golden_frames(4, *size)
    captioner.caption(frames[0])
    found = []
    for rate_hz in rates_hz:
        print(f"measuring: {size[0]}x{size[1]} at {rate_hz:g} Hz", file=sys.stderr, flush=True)
        calls = call_directly(captioner, frames, rate_hz, settings.seconds / 2)
        with tempfile.TemporaryDirectory(prefix="smart_caption_benchmark_") as folder:
            for number, frame in enumerate(frames):
                cv2.imwrite(str(Path(folder) / f"{number}.png"), frame)
            node = measure_node(Path(folder), rate_hz, settings)
        calls += call_directly(captioner, frames, rate_hz, settings.seconds / 2)
        direct: dict[str, Any] = {
            "calls": len(calls),
            "work_ms": spread(wall_ms for wall_ms, _ in calls),
            "cpu_ms_per_caption": round(mean(cpu_ms for _, cpu_ms in calls), 2),
        }
        found.append(
            {
                "size": f"{size[0]}x{size[1]}",
                "rate_hz": rate_hz,
                "direct": direct,
                "node": node,
                "overhead_ms": round(node["work_ms"]["median"] - direct["work_ms"]["median"], 3),
                "overhead_cpu_percent": round(100 * (node["cpu_ms_per_caption"] / direct["cpu_ms_per_caption"] - 1), 1),
            }
        )
    return found


def call_directly(
    captioner: Captioner, frames: Sequence[np.ndarray], rate_hz: float, seconds: float
) -> list[tuple[float, float]]:
    """Call the captioner at a camera's rate, or as fast as possible where that is slower.

    The rate matters: a processor that sleeps between two frames has lost much of the model from its caches.

    Returns:
        Wall time and CPU time of each call in milliseconds.
    """
    calls: list[tuple[float, float]] = []
    end_s = time.monotonic() + seconds
    for frame in itertools.cycle(frames):
        wall_s, cpu_s = time.monotonic(), time.process_time()
        if calls and wall_s >= end_s:
            return calls
        captioner.caption(frame)
        calls.append((1e3 * (time.monotonic() - wall_s), 1e3 * (time.process_time() - cpu_s)))
        time.sleep(max(0.0, wall_s + 1 / rate_hz - time.monotonic()))
    return calls


def measure_node(folder: Path, rate_hz: float, settings: Settings) -> dict[str, Any]:
    """Run both nodes as processes for a while and measure the captions that arrive.

    Args:
        folder: images that the camera node publishes; the logs of the nodes are written into it.
        rate_hz: rate of the camera node.
        settings: of the caption node.

    Raises:
        NoCaptionError: the nodes published no caption in time.
    """
    with ExitStack() as stack:
        stack.enter_context(environment(ros_variables(folder / "logs")))
        listener = stack.enter_context(_Listener.opened())
        ros = ["-p", f"engine:={settings.engine}", "-p", f"threads:={settings.threads}", "-p", "max_age_s:=0.0"]
        if settings.bundle:
            ros += ["-p", f"bundle:={settings.bundle}"]
        caption_node, camera_node = (
            stack.enter_context(NodeProcess(f"smart_caption_ros.nodes.{name}_command", given, folder / f"{name}.log"))
            for name, given in (
                ("caption", ros),
                ("camera", ["-p", f"source:={folder}", "-p", f"rate_hz:={rate_hz}"]),
            )
        )
        if not listener.spin(START_TIMEOUT_S, until_first=True):
            logs = "\n".join(process.log_tail() for process in (caption_node, camera_node))
            raise NoCaptionError(f"no caption after {START_TIMEOUT_S:g} s\n{logs}")
        listener.spin(WARM_UP_S)
        listener.arrived.clear()
        started, cpu_s = time.monotonic(), _cpu_s(caption_node.pid)
        listener.spin(settings.seconds)
        elapsed, cpu_s = time.monotonic() - started, _cpu_s(caption_node.pid) - cpu_s
        arrived = list(listener.arrived)
    if not arrived:
        raise NoCaptionError(f"no caption in {settings.seconds:g} s at {rate_hz:g} Hz")
    timings = [caption.timing for caption, _ in arrived]
    latencies_ms = [latency_s * 1e3 for _, latency_s in arrived]
    return {
        "captions": len(arrived),
        "captions_per_second": round(len(arrived) / elapsed, 2),
        "not_ok": sum(caption.status != Caption.STATUS_OK for caption, _ in arrived),
        "images_dropped_for_newer_ones": sum(timing.dropped_frames for timing in timings),
        "latency_ms": spread(latencies_ms),
        "work_ms": spread(timing.total_ms for timing in timings),
        "waiting_ms": spread(timing.age_at_start_ms for timing in timings),
        "model_ms": spread(timing.vision_ms + timing.decode_ms for timing in timings),
        "cpu_ms_per_caption": round(1e3 * cpu_s / len(arrived), 2),
        "cpu_percent_of_a_core": round(100 * cpu_s / elapsed, 1),
    }


class _Listener:
    """Receives the captions, each with its age at arrival."""

    def __init__(self, context: Context) -> None:
        self.arrived: list[tuple[Caption, float]] = []
        self.node = Node("benchmark", context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self.node)
        self.node.create_subscription(Caption, "/robot/caption", self._on_caption, 100)

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator["_Listener"]:
        context = Context()
        rclpy.init(context=context)
        listener = cls(context)
        try:
            yield listener
        finally:
            listener._executor.shutdown()
            listener.node.destroy_node()
            context.try_shutdown()

    def spin(self, seconds: float, *, until_first: bool = False) -> bool:
        """Listen for a while, or until the first caption; return whether there is one."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0 and not (until_first and self.arrived):
            self._executor.spin_once(timeout_sec=min(left_s, 0.1))
        return bool(self.arrived)

    def _on_caption(self, caption: Caption) -> None:
        now = self.node.get_clock().now()
        age = now - Time.from_msg(caption.header.stamp, now.clock_type)
        self.arrived.append((caption, age.nanoseconds / 1e9))


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process in user and system mode (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
