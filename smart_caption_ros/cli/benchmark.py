"""`smart-caption benchmark`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from smart_caption_ros.cli.options import BundleArgument, EngineOption, Option, ThreadsOption
from smart_caption_ros.cli.terminal import (
    bundle_files,
    check_output_file,
    input_files,
    log_to_terminal,
    print_json,
    print_table,
    printable,
    progress_bar,
    write_json,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def benchmark(
    path: BundleArgument = None,
    *,
    output: Annotated[Path | None, Option("--json", help="JSON file to write; - prints it.")] = None,
    engine: EngineOption = "auto",
    threads: ThreadsOption = None,
    source: Annotated[
        str | None,
        Option(help="Frames to caption: an image, a folder, a video, a bag; generated frames by default."),
    ] = None,
    frames: Annotated[int, Option(min=1, max=100_000, help="Number of different frames.")] = 8,
    rounds: Annotated[int, Option(min=1, help="Number of times that each is captioned.")] = 5,
) -> None:
    """Measure how fast a bundle captions frames on this machine.

    The generated frames are 640x480, the same everywhere, and get captions of different lengths; --source measures on
    your own frames.
    """
    from smart_caption_ros import __version__
    from smart_caption_ros.captioning import Captioner
    from smart_caption_ros.grounding import guide_words
    from smart_caption_ros.measuring import benchmark as benchmarking

    if str(output) != "-":
        check_output_file(output, "--json", (*input_files([source] if source else ()), *bundle_files([path])))
    log_to_terminal()
    images = _images(source, frames)
    captioner = guide_words(Captioner.from_bundle(path, engine, threads))
    with progress_bar(rounds * len(images), delay_s=0) as bar:
        measured = benchmarking.measure(captioner, images, rounds, bar.update)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "package": __version__,
        "model": captioner.model,
        "bundle": str(captioner.bundle.path),
        "engine": captioner.engine,
        "engine_choice": captioner.engine_choice,
        "captioner": captioner.graph,
        "threads": threads,
        "source": source or "made-up frames",
        "frame_size": [images[0].shape[1], images[0].shape[0]],
        "hardware": benchmarking.hardware(),
        **measured,
        "first_caption": benchmarking.measure_start(captioner.bundle.path, engine, threads),
    }
    if str(output) == "-":
        print_json(result)
        return
    if output is not None:
        write_json(output, result)
    _print_result(result)


def _images(source: str | None, count: int) -> "list[NDArray[np.uint8]]":
    if source is None:
        from smart_caption_ros.measuring.agreement import golden_frames

        return golden_frames(count)
    from itertools import islice

    from smart_caption_ros.sources import open_source

    return [frame.image_bgr for frame in islice(open_source(source), count)]


def _print_result(result: dict[str, Any]) -> None:
    print(printable(f"{result['model']} on {result['engine_choice']}"))
    width, height = result["frame_size"]
    of_source = f"{width}x{height} ({result['source']}), {result['hardware']['processor']}"
    print(printable(f"{result['frames']} frames, {of_source}"))
    rows = [
        ("cpu time" if part == "cpu" else part, *(f"{values[name]:.1f} ms" for name in ("median", "p5", "p95")))
        for part, values in result["milliseconds"].items()
    ]
    print_table(("", "median", "5 %", "95 %"), rows)
    process = result["first_caption"]
    memory = f", with {process['rss_mb']:.0f} MB of memory" if "rss_mb" in process else ""
    print(f"{result['frames_per_second']:.1f} frames a second, {result['mean_steps']:.1f} words decoded a frame")
    print(f"a process of its own has its first caption after {process['seconds']:.2f} s{memory}")
