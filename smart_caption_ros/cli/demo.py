"""`smart-caption demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.cli.options import Option
from smart_caption_ros.cli.terminal import FAILED, errors_in_a_sentence, report_error


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
    with errors_in_a_sentence():
        try:
            from smart_caption_ros.nodes.demo.demo import run_demo
            from smart_caption_ros.nodes.demo.plan import DEFAULT_SOURCE, DemoOptions
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if missing in ("smart_caption_ros.msg", "smart_caption_ros.srv"):
                report_error(
                    "the demo needs the messages of this package, which were not built: ROS 2 was not there "
                    "when it was installed; install it again in the environment with ROS 2: pip install ."
                )
            elif missing.split(".")[0] in ("smart_caption_ros", "numpy", "cv2"):
                raise
            else:
                report_error(
                    f"the demo needs ROS 2, and there is no module {missing}: "
                    "source /opt/ros/jazzy/setup.bash, or run `make demo` in a checkout, "
                    "which makes an environment with ROS 2"
                )
            raise typer.Exit(FAILED) from None
        options = DemoOptions(source or DEFAULT_SOURCE, output, rate, timeout, max_frames, every)
        raise typer.Exit(run_demo(options))
