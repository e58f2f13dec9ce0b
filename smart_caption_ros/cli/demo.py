"""`smart-caption demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.cli.terminal import FAILED, complain, failures_in_a_sentence


def demo(
    source: Annotated[
        str | None,
        typer.Option(
            help="An image, folder, sequences in ACVR's layout, video, bag or camera index; the household sequences in "
            "the package by default."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder for what the demo leaves.")] = Path("demo_output"),
    rate: Annotated[float, typer.Option(min=0.1, max=30, help="Frames a second.")] = 1.0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds after which the demo gives up.")] = 120.0,
    max_frames: Annotated[int, typer.Option(min=1, help="Frames after which a longer source ends.")] = 60,
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Take every Nth frame; all by default, and of sequences 16 spread over them."),
    ] = None,
) -> None:
    """Start a camera node and a caption node, and print the captions that arrive over ROS 2."""
    with failures_in_a_sentence():
        try:
            from smart_caption_ros.nodes.demo.demo import run_demo
            from smart_caption_ros.nodes.demo.plan import DEFAULT_SOURCE, DemoOptions
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if missing in ("smart_caption_ros.msg", "smart_caption_ros.srv"):
                complain(
                    "the demo needs the messages of this package, which were not built: ROS 2 was not there "
                    "when it was installed; install it again in the environment with ROS 2: pip install ."
                )
            elif missing.split(".")[0] in ("smart_caption_ros", "numpy", "cv2"):
                raise
            else:
                complain(
                    f"the demo needs ROS 2, and there is no module {missing}: "
                    "source /opt/ros/jazzy/setup.bash, or run `make demo` in a checkout, "
                    "which makes an environment with ROS 2"
                )
            raise typer.Exit(FAILED) from None
        options = DemoOptions(source or DEFAULT_SOURCE, output, rate, timeout, max_frames, every)
        raise typer.Exit(run_demo(options))
