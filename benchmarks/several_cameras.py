"""Measure what a second camera costs the caption node, and whether the engine gains by a batch of two images.

    python -m benchmarks.several_cameras [--bundle FOLDER] [--size 1920x1080] [--rate 5] [--json FILE]

Memory and processor time of a node with one camera, of a node with two, and of two nodes with one each, all as
processes over DDS, in rounds one after the other. Then the time of two images in a batch of two beside that of the same
images one after the other, called alternately in this process. Needs ROS 2 and the built messages.
"""

import itertools
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import cv2
import numpy as np
import typer
from rclpy.context import Context
from rich.console import Console
from rich.table import Table
from smart_caption_ros.msg import Caption

from benchmarks.environment import describe_environment, report
from benchmarks.own_context import NodeInOwnContext
from benchmarks.process_use import cpu_s, resident_mb
from benchmarks.timing import measure
from smart_caption_ros.captioning import BundleError, Captioner, EngineError
from smart_caption_ros.measuring.agreement import golden_frames
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables
from training.command_line import JsonOption, run_command

NODE, CAMERA_NODE = "smart_caption_ros.nodes.caption_command", "smart_caption_ros.nodes.camera_command"
LAYOUTS = {
    "one camera": [["front"]],
    "two cameras": [["front", "rear"]],
    "two nodes": [["front"], ["rear"]],
}
"""The cameras of each node."""

START_TIMEOUT_S = 120.0
WARM_UP_S = 5.0
_SAMPLE_S = 0.5
_KINDS = ("resident", "private", "shared", "shared_memory")


class NoCaptionError(Exception):
    """The nodes did not publish captions of every camera in time; the message has the end of their logs."""


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
    """Measure what a second camera costs the caption node, and whether the engine gains by a batch of two images.

    Needs ROS 2 and the built messages.
    """
    match = re.fullmatch(r"(\d+)x(\d+)", size)
    if match is None or not all(map(int, match.groups())):
        raise typer.BadParameter(f"--size is {size!r}, and has to be WIDTHxHEIGHT in pixels, such as 1920x1080")
    frames = golden_frames(4, int(match[1]), int(match[2]))
    node_arguments: dict[str, object] = {"engine": engine, "threads": threads, **({"bundle": bundle} if bundle else {})}
    runs: dict[str, list[dict[str, float]]] = {layout: [] for layout in LAYOUTS}
    for number, layout in itertools.product(range(rounds), LAYOUTS):
        print(f"measuring: {layout}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        runs[layout].append(measure_layout(LAYOUTS[layout], frames, rate, seconds, node_arguments))
    captioner = Captioner.from_bundle(bundle, engine, threads, spinning=False)
    result = {
        **describe_environment(seed=0),
        "model": captioner.model,
        "engine": captioner.engine,
        "threads": threads,
        "size": size,
        "rate_hz": rate,
        "seconds": seconds,
        "runs": runs,
        "medians": {layout: medians_of(found) for layout, found in runs.items()},
        "second_camera_mb": second_camera_mb(runs),
        "batch_of_two": measure_batch(captioner, frames),
    }
    report(result, json_file)
    Console(stderr=True).print(table_of(result))


def main() -> int:
    return run_command(
        several_cameras, "python -m benchmarks.several_cameras", (BundleError, EngineError, NoCaptionError)
    )


def measure_layout(
    nodes: Sequence[Sequence[str]],
    frames: Sequence[np.ndarray],
    rate_hz: float,
    seconds: float,
    node_arguments: Mapping[str, object],
) -> dict[str, float]:
    """Run caption nodes and a camera node for each of their cameras, and measure the caption nodes.

    Args:
        nodes: the cameras of each caption node.
        frames: images of each camera, (H, W, 3) uint8.
        rate_hz: images per second of each camera.
        seconds: duration.
        node_arguments: parameters of the caption nodes.

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
        listener = stack.enter_context(_Listener.opened(cameras))
        caption_nodes = [
            stack.enter_context(
                NodeProcess(
                    NODE,
                    [
                        *_parameters({**node_arguments, "max_age_s": 0.0, "cameras": f"[{', '.join(names)}]"}),
                        *("-r", f"__node:=captions_of_{'_'.join(names)}"),
                    ],
                    folder / f"{'_'.join(names)}.log",
                )
            )
            for names in nodes
        ]
        camera_nodes = [
            stack.enter_context(
                NodeProcess(
                    CAMERA_NODE,
                    [
                        *_parameters({"source": images, "rate_hz": rate_hz}),
                        *("-r", f"__node:={name}_driver", "-r", f"image:={name}/image"),
                    ],
                    folder / f"{name}_driver.log",
                )
            )
            for name in cameras
        ]
        if not listener.spin(START_TIMEOUT_S, until_all=True):
            logs = "\n".join(process.log_tail() for process in (*caption_nodes, *camera_nodes))
            raise NoCaptionError(f"not every camera had a caption after {START_TIMEOUT_S:g} s\n{logs}")
        listener.spin(WARM_UP_S)
        listener.captions.clear()
        started_s, cpu_before_s = time.monotonic(), sum(cpu_s(node.pid) for node in caption_nodes)
        samples: list[list[dict[str, float]]] = []
        while time.monotonic() < started_s + seconds:
            listener.spin(_SAMPLE_S)
            samples.append([resident_mb(node.pid) for node in caption_nodes])
        elapsed_s = time.monotonic() - started_s
        cpu_used_s = sum(cpu_s(node.pid) for node in caption_nodes) - cpu_before_s
        captions = len(listener.captions)
    memory = {kind: [sum(node[kind] for node in sample) for sample in samples] for kind in _KINDS}
    return {
        **{f"{kind}_mb": round(median(summed), 1) for kind, summed in memory.items()},
        "captions_per_second": round(captions / elapsed_s, 2),
        "cpu_ms_per_caption": round(1e3 * cpu_used_s / max(1, captions), 2),
    }


def measure_batch(captioner: Captioner, frames: Sequence[np.ndarray], rounds: int = 10) -> dict[str, Any]:
    """Time two images in one batch, and one after the other."""
    pairs = list(itertools.pairwise(frames))
    found = measure(
        {
            "batch": lambda pair: captioner.caption_batch(pair),
            "one by one": lambda pair: [captioner.caption_batch([frame]) for frame in pair],
        },
        pairs,
        rounds,
    )
    wall_ratio = found["batch"]["wall_ms_median"] / found["one by one"]["wall_ms_median"]
    return {**found, "batch_to_one_by_one": round(wall_ratio, 3)}


def medians_of(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure over the rounds."""
    return {name: round(median(run[name] for run in runs), 2) for name in runs[0]}


def second_camera_mb(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Return what the second camera adds to the memory of a node, median over the rounds."""
    pairs = list(zip(runs["one camera"], runs["two cameras"], strict=True))
    return {kind: round(median(two[f"{kind}_mb"] - one[f"{kind}_mb"] for one, two in pairs), 1) for kind in _KINDS}


def table_of(result: Mapping[str, Any]) -> Table:
    """Return the medians as a table."""
    table = Table("", "resident MB", "private MB", "captions/s", "CPU ms/caption", box=None, pad_edge=False)
    for layout, found in result["medians"].items():
        table.add_row(
            layout,
            f"{found['resident_mb']:.0f}",
            f"{found['private_mb']:.0f}",
            f"{found['captions_per_second']:.1f}",
            f"{found['cpu_ms_per_caption']:.1f}",
        )
    table.add_row("second camera", f"{result['second_camera_mb']['resident']:+.1f}")
    table.add_row("batch of two", f"{result['batch_of_two']['batch_to_one_by_one']:.3f} of the time of one by one")
    return table


class _Listener(NodeInOwnContext):
    """Counts the captions of all cameras."""

    def __init__(self, context: Context, cameras: Sequence[str]) -> None:
        super().__init__(context)
        self.captions: list[str] = []
        self._cameras = set(cameras)
        for camera in cameras:
            self.node.create_subscription(Caption, f"/{camera}/caption", self._on_caption, 100)

    def spin(self, seconds: float, *, until_all: bool = False) -> bool:
        """Listen for a while, or until every camera has a caption; return whether all have."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0 and not (until_all and self._cameras <= set(self.captions)):
            self._executor.spin_once(timeout_sec=min(left_s, 0.1))
        return self._cameras <= set(self.captions)

    def _on_caption(self, caption: Caption) -> None:
        if caption.status == Caption.STATUS_OK:
            self.captions.append(caption.camera)


def _parameters(values: Mapping[str, object]) -> list[str]:
    return [argument for name, value in values.items() for argument in ("-p", f"{name}:={value}")]


if __name__ == "__main__":
    sys.exit(main())
