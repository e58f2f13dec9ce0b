"""Measure the caption node beside `Captioner.caption` and beside a plain node, as processes over DDS.

    python -m benchmarks.node [--bundle FOLDER] [--json FILE] [--quick]

For 640x480 and 1080p at 5, 15 and 30 Hz: CPU time and time per caption, compared with the captioner called directly at
the same rate before and after, with nothing else running; captions per second; latency from the stamp of the image to
the arrival of the caption in a third process (this one), which is the caption's age; images replaced by newer ones.

Then the same captioner in the node that a user would write first (`plain_caption_node.py`) gets the same images from
the same camera node: one thread and a queue of ten images. The camera publishes reliably for both, because that node
asks for it, as rclpy does by default. Needs ROS 2 and the built messages.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import cv2
import numpy as np
import typer
from rclpy.time import Time
from smart_caption_ros.msg import Caption

from benchmarks.caption_listener import (
    CAMERA_NODE,
    CaptionListener,
    NoCaptionError,
    NodeSettings,
    parameter_arguments,
)
from benchmarks.environment import describe_environment, report
from benchmarks.process_use import cpu_s
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.grounding import guide_words
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.measuring.benchmark import spread
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables
from training.command_line import JsonOption, run_command

SIZES, RATES_HZ = ((640, 480), (1920, 1080)), (5.0, 15.0, 30.0)
WARM_UP_S = 2.0
QUICK_SECONDS = 3.0
PLAIN_NODE = "benchmarks.plain_caption_node"


def node(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    engine: Annotated[str, typer.Option(help="Engine that runs the bundle.")] = "onnxruntime-cpu",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 20.0,
    quick: Annotated[bool, typer.Option("--quick", help="Measure one rate alone, for three seconds.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Measure the caption node beside Captioner.caption and beside a plain node, as processes over DDS.

    Needs ROS 2 and the built messages.
    """
    settings, seconds = NodeSettings(bundle, engine, threads), QUICK_SECONDS if quick else seconds
    captioner = guide_words(Captioner.from_bundle(bundle, engine, threads))
    rates_hz = RATES_HZ[:1] if quick else RATES_HZ
    result: dict[str, Any] = {
        **describe_environment(seed=0),
        "model": captioner.model,
        "engine": captioner.engine,
        "threads": threads,
        "seconds": seconds,
        "runs": [run for size in SIZES for run in measure_size(captioner, size, rates_hz, settings, seconds)],
    }
    report(result, json_file)


def main() -> int:
    return run_command(node, "python -m benchmarks.node", (BundleError, EngineError, NoCaptionError))


def measure_size(
    captioner: Captioner, size: tuple[int, int], rates_hz: tuple[float, ...], settings: NodeSettings, seconds: float
) -> list[dict[str, Any]]:
    """Measure both nodes at every rate, and before and after them the captioner alone on the same frames at that rate.

    Raises:
        NoCaptionError: the nodes published no caption in time.
    """
    frames = golden_frames(4, *size)
    captioner.caption(frames[0])
    found = []
    for rate_hz in rates_hz:
        print(f"measuring: {size[0]}x{size[1]} at {rate_hz:g} Hz", file=sys.stderr, flush=True)
        calls = call_directly(captioner, frames, rate_hz, seconds / 2)
        with tempfile.TemporaryDirectory(prefix="smart_caption_benchmark_") as folder:
            for number, frame in enumerate(frames):
                cv2.imwrite(str(Path(folder) / f"{number}.png"), frame)
            node = measure_node(Path(folder), rate_hz, settings, seconds)
            plain_node = measure_plain_node(Path(folder), rate_hz, settings, seconds)
        calls += call_directly(captioner, frames, rate_hz, seconds / 2)
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
                "plain_node": plain_node,
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


def measure_node(folder: Path, rate_hz: float, settings: NodeSettings, seconds: float) -> dict[str, Any]:
    """Run camera node and caption node as processes for a while and measure the captions that arrive.

    Args:
        folder: images that the camera node publishes; the logs of the nodes are written into it.

    Raises:
        NoCaptionError: the nodes published no caption in time.
    """
    captions, figures = _observe(settings, {"max_age_s": 0.0}, folder, rate_hz, seconds)
    timings = [caption.timing for caption in captions]
    return {
        **figures,
        "not_ok": sum(caption.status != Caption.STATUS_OK for caption in captions),
        "images_dropped_for_newer_ones": sum(timing.dropped_frames for timing in timings),
        "work_ms": spread(timing.total_ms for timing in timings),
        "waiting_ms": spread(timing.age_at_start_ms for timing in timings),
        "model_ms": spread(timing.vision_ms + timing.decode_ms for timing in timings),
    }


def measure_plain_node(folder: Path, rate_hz: float, settings: NodeSettings, seconds: float) -> dict[str, Any]:
    """Measure the node of `plain_caption_node.py` in the place of the caption node; see :func:`measure_node`."""
    return _observe(replace(settings, module=PLAIN_NODE), {}, folder, rate_hz, seconds)[1]


def _observe(
    settings: NodeSettings, parameters: Mapping[str, object], folder: Path, rate_hz: float, seconds: float
) -> tuple[list[Caption], dict[str, Any]]:
    """Run a camera node and another node; return the captions, and the figures that need no timing in them.

    Raises:
        NoCaptionError: no caption arrived in time.
    """
    with ExitStack() as stack:
        stack.enter_context(environment(ros_variables(folder / "logs")))
        listener = stack.enter_context(CaptionListener.opened(["/robot/caption"]))
        given = {**settings.parameters, **parameters}
        camera = {"source": folder, "rate_hz": rate_hz, "qos_overrides./image.publisher.reliability": "reliable"}
        caption_node, camera_node = (
            stack.enter_context(NodeProcess(process, parameter_arguments(values), folder / f"{process}.log"))
            for process, values in ((settings.module, given), (CAMERA_NODE, camera))
        )
        listener.wait_for_all((caption_node, camera_node))
        listener.spin(WARM_UP_S)
        listener.arrived.clear()
        started_s, cpu_before_s = time.monotonic(), cpu_s(caption_node.pid)
        listener.spin(seconds)
        elapsed_s, cpu_used_s = time.monotonic() - started_s, cpu_s(caption_node.pid) - cpu_before_s
    if not listener.arrived:
        raise NoCaptionError(f"no caption in {seconds:g} s at {rate_hz:g} Hz")
    captions = [caption for caption, _ in listener.arrived]
    stamps_s = [Time.from_msg(caption.header.stamp).nanoseconds / 1e9 for caption in captions]
    return captions, {
        "captions": len(captions),
        "captions_per_second": round(len(captions) / elapsed_s, 2),
        "images_without_caption": images_between(stamps_s, rate_hz),
        "latency_ms": spread(age_s * 1e3 for _, age_s in listener.arrived),
        "cpu_ms_per_caption": round(1e3 * cpu_used_s / len(captions), 2),
        "cpu_percent_of_a_core": round(100 * cpu_used_s / elapsed_s, 1),
    }


def images_between(stamps_s: Sequence[float], rate_hz: float) -> int:
    """Return how many images of a camera were published between those with stamps in ascending order."""
    return sum(max(0, round((later - earlier) * rate_hz) - 1) for earlier, later in pairwise(stamps_s))


if __name__ == "__main__":
    sys.exit(main())
