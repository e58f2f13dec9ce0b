"""`smart-caption demo`."""

from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.cli.options import Option
from smart_caption_ros.cli.terminal import input_files, needs_ros
from smart_caption_ros.files import check_output, check_outputs_in


def demo(
    source: Annotated[
        str | None,
        Option(
            help="Image, folder, sequences in the ACVR layout, video, bag or index of a camera; the household "
            "sequences in the package by default."
        ),
    ] = None,
    output: Annotated[Path, Option(help="Folder for the results.")] = Path("demo_output"),
    rate: Annotated[float, Option(min=0.1, max=30, help="Frames per second.")] = 1.0,
    timeout: Annotated[float, Option(min=1, help="Time after which the demo gives up, in seconds.")] = 120.0,
    max_frames: Annotated[int, Option(min=1, help="Maximum number of frames.")] = 60,
    every: Annotated[
        int | None,
        Option(min=1, help="Take every Nth frame; all by default, and of sequences 16 that span them."),
    ] = None,
) -> None:
    """Start a camera node and a caption node, and print the captions that arrive over ROS 2."""
    with needs_ros("the demo"):
        from smart_caption_ros.nodes.demo.demo import run_demo
        from smart_caption_ros.nodes.demo.plan import DEFAULT_SOURCE, DemoOptions
    if source is not None:
        check_output(output / "contact_sheet.png", input_files([source]))
        check_outputs_in(output / "overlays", "*.png", input_files([source]))
    options = DemoOptions(DEFAULT_SOURCE if source is None else source, output, rate, timeout, max_frames, every)
    raise typer.Exit(run_demo(options))
