"""`smart-caption benchmark`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from smart_caption_ros.cli.terminal import (
    BundleArgument,
    check_engine,
    console,
    failures_in_a_sentence,
    log_to_terminal,
)
from smart_caption_ros.files import write_text_atomically


def benchmark(
    path: BundleArgument = None,
    output: Annotated[Path | None, typer.Option("--json", help="The JSON file to write; - prints it.")] = None,
    engine: Annotated[str, typer.Option(help="What runs the model; `doctor` lists the engines.")] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; the engine's choice by default.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Frames to caption: an image, a folder, a video, a bag; made-up ones by default.")
    ] = None,
    frames: Annotated[int, typer.Option(min=1, help="How many different frames.")] = 8,
    rounds: Annotated[int, typer.Option(min=1, help="How often each is captioned.")] = 5,
) -> None:
    """Measure how fast a bundle captions frames on this machine.

    Made-up frames are 640x480, the same everywhere, and get captions of some length; --source measures on yours.
    """
    with failures_in_a_sentence():
        from tqdm import tqdm

        from smart_caption_ros import __version__
        from smart_caption_ros.captioning import Captioner
        from smart_caption_ros.measuring import benchmark as benchmarking

        check_engine(engine)
        log_to_terminal()
        pictures = _frames(source, frames)
        captioner = Captioner.from_bundle(path, engine, threads)
        with tqdm(total=rounds * len(pictures), unit="frame", leave=False, disable=not sys.stderr.isatty()) as bar:
            measured = benchmarking.measure(captioner, pictures, rounds, bar.update)
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
            "frame_size": [pictures[0].shape[1], pictures[0].shape[0]],
            "hardware": benchmarking.hardware(),
            **measured,
            "first_caption": benchmarking.measure_start(captioner.bundle.path, engine, threads),
        }
        if output is not None and str(output) != "-":
            write_text_atomically(output, json.dumps(result, indent=2) + "\n")
        if str(output) == "-":
            print(json.dumps(result, indent=2))
        else:
            _print_result(result)


def _frames(source: str | None, count: int) -> list[Any]:
    if source is None:
        from smart_caption_ros.measuring.agreement import golden_frames

        return golden_frames(count)
    from itertools import islice

    from smart_caption_ros.sources import SourceError, open_source

    pictures = [frame.image_bgr for frame in islice(open_source(source), count)]
    if not pictures:
        raise SourceError(f"{source} has no frame that can be read")
    return pictures


def _print_result(result: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    print(f"{result['model']} on {result['engine_choice']}")
    width, height = result["frame_size"]
    print(f"{result['frames']} frames, {width}x{height} ({result['source']}), {result['hardware']['processor']}")
    table = Table("", "median", "5 %", "95 %", box=None, pad_edge=False)
    for part, values in result["milliseconds"].items():
        label = Text(f"{part} time" if part == "cpu" else part)
        table.add_row(label, *(f"{values[name]:.1f} ms" for name in ("median", "p5", "p95")))
    console().print(table)
    process = result["first_caption"]
    memory = f", with {process['rss_mb']:.0f} MB of memory" if "rss_mb" in process else ""
    print(f"{result['frames_per_second']:.1f} frames a second, {result['mean_steps']:.1f} words decoded a frame")
    print(f"a process of its own has its first caption after {process['seconds']:.2f} s{memory}")
