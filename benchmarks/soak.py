"""Run the caption node for a long time with good and bad images and under disturbances, and check it.

    python -m benchmarks.soak [--minutes 10] [--size 1920x1080] [--rate 30] [--cycles 200] [--json FILE]

The node is a process of its own. A camera publishes images of which 5 % are bad: wrong steps, unknown encodings,
truncated data, huge claimed sizes, negative stamps, random bytes and so on. Meanwhile parameters change, the node is
deactivated and activated, captioning is switched off and on, services are called, and listeners subscribe and
unsubscribe. A detector publishes objects, now and then those of another clock, without stamps, with NaN or control
characters, or none. The checks:

- the node lives, answers all calls, ends with status 0, and logs no exception;
- each caption has the header of one image, and the text and score that the captioner, called directly, gives for that
  image; a bad image is answered with an error;
- no caption holds NaN, infinity or control characters;
- images received are answered, dropped, passed over or unchanged, in every diagnostics message and at the end;
- the resident memory grows by less than 1 MB a minute: Theil-Sen estimator of one sample every 30 s after the warm-up,
  at rest, that is without listeners and with the first value of every parameter, since these need memory themselves;
- with ``--cycles``: it grows by less than 2 MB in as many lifecycle cycles after 20 for warm-up.

The exit status is 1 if a check fails. Needs ROS 2 and the built messages.
"""

import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rclpy.utilities import get_rmw_implementation_identifier
from rich.console import Console
from rich.progress import Progress

from benchmarks.caption_listener import NodeSettings
from benchmarks.environment import describe_environment, parsed_size, report, versions_of
from benchmarks.node_soak.cycles import run_cycles
from benchmarks.node_soak.run import Soak, run_soak
from benchmarks.node_soak.user import NoAnswerError
from smart_caption_ros.captioning import BundleError, EngineError
from training.command_line import FAILED, JsonOption, report_error, run_command

# The memory rises until each kind of bad image and each disturbance has occurred several times.
_WARM_UP_SHARE, _MOST_WARM_UP_S = 0.25, 180.0
_WARM_UP_CYCLES_SHARE, _MOST_WARM_UP_CYCLES = 0.25, 20
_ROS_PACKAGES = ("ros-jazzy-rclpy", "ros-rmw-fastrtps-cpp")


def soak(
    minutes: Annotated[float, typer.Option(min=0.0, help="Duration of the soak; 0 leaves it out.")] = 10.0,
    size: Annotated[str, typer.Option(help="Width and height of the images in pixels.")] = "1920x1080",
    rate: Annotated[float, typer.Option(min=0.1, max=240.0, help="Images per second.")] = 30.0,
    compressed: Annotated[bool, typer.Option("--compressed", help="Publish compressed images alone.")] = False,
    bad_share: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of the images that are bad.")] = 0.05,
    disturb_every: Annotated[float, typer.Option(min=0.01, help="Mean seconds between two disturbances.")] = 3.0,
    max_slope: Annotated[float, typer.Option(help="Limit of the growth of the memory in MB a minute.")] = 1.0,
    cycles: Annotated[int, typer.Option(min=0, help="Lifecycle cycles after the soak.")] = 0,
    bundle: Annotated[Path | None, typer.Option(help="Folder of the bundle (default: the bundle that ships).")] = None,
    engine: Annotated[str, typer.Option(help="Engine that runs the bundle.")] = "onnxruntime-cpu",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the images and the disturbances.")] = 0,
    json_file: JsonOption = None,
) -> int:
    """Run the caption node for a long time with good and bad images and under disturbances, and check it.

    Needs ROS 2 and the built messages.
    """
    node = NodeSettings(bundle, engine, threads)
    seconds = 60.0 * minutes
    settings = Soak(
        node,
        size=parsed_size(size),
        rate_hz=rate,
        compressed=compressed,
        seconds=seconds,
        warm_up_s=min(_WARM_UP_SHARE * seconds, _MOST_WARM_UP_S),
        bad_share=bad_share,
        disturb_every_s=disturb_every,
        max_slope_mb_per_minute=max_slope,
        seed=seed,
    )
    result: dict[str, Any] = {
        **describe_environment(seed),
        "ros": {"rmw": get_rmw_implementation_identifier(), **versions_of(_ROS_PACKAGES, "not from PyPI")},
        "bundle": str(bundle) if bundle else "default",
        "engine": engine,
        "threads": threads,
        "size": size,
        "rate_hz": rate,
        "compressed": compressed,
        "bad_share": bad_share,
        "disturb_every_s": disturb_every,
    }
    with (
        tempfile.TemporaryDirectory(prefix="smart_caption_soak_") as folder,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        if minutes:
            task = progress.add_task("soak", total=seconds)
            result["soak"] = run_soak(settings, Path(folder), lambda done: progress.update(task, completed=done))
        if cycles:
            first = min(round(_WARM_UP_CYCLES_SHARE * cycles), _MOST_WARM_UP_CYCLES)
            cycle_task = progress.add_task("lifecycle cycles", total=first + cycles)
            result["lifecycle"] = run_cycles(
                node, cycles, first, Path(folder), lambda done: progress.update(cycle_task, completed=done)
            )
    report(result, json_file)
    problems = [problem for part in ("soak", "lifecycle") for problem in result.get(part, {}).get("problems", [])]
    for problem in problems:
        report_error(problem)
    return FAILED if problems else 0


def main() -> int:
    return run_command(soak, "python -m benchmarks.soak", (BundleError, EngineError, NoAnswerError, ProcessLookupError))


if __name__ == "__main__":
    sys.exit(main())
