"""Measure what a second camera costs the caption node.

    python -m benchmarks.several_cameras [--bundle FOLDER] [--size 1920x1080] [--rate 5] [--json FILE]

Memory and processor time of a node with one camera, of a node with two, and of two nodes with one each, all as
processes over DDS, in rounds one after the other. Needs ROS 2 and the built messages.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated

import cv2
import numpy as np
import typer
from smart_caption_ros.msg import Caption

from benchmarks.caption_listener import (
    CAMERA_NODE,
    NODE,
    CaptionListener,
    NoCaptionError,
    NodeSettings,
    parameter_arguments,
)
from benchmarks.environment import describe_environment, parsed_size, report
from benchmarks.process_use import cpu_s, resident_mb
from benchmarks.timing import medians_of
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables
from training.command_line import JsonOption, run_command

LAYOUTS = {
    "one camera": [["front"]],
    "two cameras": [["front", "rear"]],
    "two nodes": [["front"], ["rear"]],
}
"""The cameras of each node."""

WARM_UP_S = 5.0
_SAMPLE_S = 0.5
_KINDS = ("resident", "private", "shared", "shared_memory")


def several_cameras(
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    engine: Annotated[str, typer.Option(help="Engine that runs the bundle.")] = "onnxruntime-cpu",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    size: Annotated[str, typer.Option(help="Width and height of the images in pixels.")] = "1920x1080",
    rate: Annotated[float, typer.Option(min=0.1, max=240.0, help="Images per second of each camera.")] = 5.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Duration of each measurement in seconds.")] = 15.0,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each layout.")] = 3,
    json_file: JsonOption = None,
) -> None:
    """Measure what a second camera costs the caption node. Needs ROS 2 and the built messages."""
    frames = golden_frames(4, *parsed_size(size))
    node_parameters = NodeSettings(bundle, engine, threads).parameters
    runs: dict[str, list[dict[str, float]]] = {layout: [] for layout in LAYOUTS}
    for number, layout in itertools.product(range(rounds), LAYOUTS):
        print(f"measuring: {layout}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        runs[layout].append(measure_layout(LAYOUTS[layout], frames, rate, seconds, node_parameters))
    result = {
        **describe_environment(seed=0),
        "bundle": str(bundle or "default"),
        "engine": engine,
        "threads": threads,
        "size": size,
        "rate_hz": rate,
        "seconds": seconds,
        "runs": runs,
        "medians": {layout: medians_of(found) for layout, found in runs.items()},
        "second_camera_mb": second_camera_mb(runs),
    }
    report(result, json_file)


def main() -> int:
    return run_command(several_cameras, "python -m benchmarks.several_cameras", (NoCaptionError,))


def measure_layout(
    nodes: Sequence[Sequence[str]],
    frames: Sequence[np.ndarray],
    rate_hz: float,
    seconds: float,
    node_parameters: Mapping[str, object],
) -> dict[str, float]:
    """Run caption nodes, and a camera node for each of their cameras, and measure the caption nodes.

    Args:
        nodes: names of the cameras of each caption node.
        frames: images of each camera, (H, W, 3) uint8.
        rate_hz: images per second of each camera.

    Returns:
        Memory of all caption nodes in 1e6 bytes, median over time; captions per second; CPU time.

    Raises:
        NoCaptionError: a camera got no captions.
    """
    cameras = list(itertools.chain.from_iterable(nodes))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smart_caption_benchmark_")))
        images = folder / "images"
        images.mkdir()
        for number, frame in enumerate(frames):
            cv2.imwrite(str(images / f"{number}.png"), frame)
        stack.enter_context(environment(ros_variables(folder / "logs")))
        listener = stack.enter_context(CaptionListener.opened([f"/{camera}/caption" for camera in cameras]))

        def started(module: str, name: str, parameters: Mapping[str, object], *remaps: str) -> NodeProcess:
            arguments = [*parameter_arguments(parameters), "-r", f"__node:={name}", *remaps]
            return stack.enter_context(NodeProcess(module, arguments, folder / f"{name}.log"))

        caption_nodes = [
            started(
                NODE,
                f"captions_of_{'_'.join(names)}",
                {**node_parameters, "max_age_s": 0.0, "cameras": f"[{', '.join(names)}]"},
            )
            for names in nodes
        ]
        camera_nodes = [
            started(CAMERA_NODE, f"{name}_driver", {"source": images, "rate_hz": rate_hz}, "-r", f"image:={name}/image")
            for name in cameras
        ]
        listener.wait_for_all((*caption_nodes, *camera_nodes))
        listener.spin(WARM_UP_S)
        listener.arrived.clear()
        started_s, cpu_before_s = time.monotonic(), sum(cpu_s(node.pid) for node in caption_nodes)
        samples: list[list[dict[str, float]]] = []
        while time.monotonic() < started_s + seconds:
            listener.spin(_SAMPLE_S)
            samples.append([resident_mb(node.pid) for node in caption_nodes])
        elapsed_s = time.monotonic() - started_s
        cpu_used_s = sum(cpu_s(node.pid) for node in caption_nodes) - cpu_before_s
        captions = sum(caption.status == Caption.STATUS_OK for caption, _ in listener.arrived)
    memory = {kind: [sum(node[kind] for node in sample) for sample in samples] for kind in _KINDS}
    return {
        **{f"{kind}_mb": round(median(summed), 1) for kind, summed in memory.items()},
        "captions_per_second": round(captions / elapsed_s, 2),
        "cpu_ms_per_caption": round(1e3 * cpu_used_s / max(1, captions), 2),
    }


def second_camera_mb(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Return what the second camera adds to the memory of a node, median over the rounds."""
    pairs = list(zip(runs["one camera"], runs["two cameras"], strict=True))
    return {kind: round(median(two[f"{kind}_mb"] - one[f"{kind}_mb"] for one, two in pairs), 1) for kind in _KINDS}


if __name__ == "__main__":
    sys.exit(main())
