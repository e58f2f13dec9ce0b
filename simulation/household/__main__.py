"""Render household scenes with ground truth and captions."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from simulation.household.errors import HouseholdError
from simulation.household.generate import generate
from simulation.household.sequences import RenderSettings

_DEFAULTS = RenderSettings()


def household(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="ROOT", help="Folder of the sequences.")],
    sequences: Annotated[int, typer.Option(help="Number of sequences.")] = 4,
    frames: Annotated[int, typer.Option(help="Frames of each sequence.")] = _DEFAULTS.frames,
    size: Annotated[tuple[int, int], typer.Option(metavar="WIDTH HEIGHT", help="Size of a frame in pixels.")] = (
        _DEFAULTS.width,
        _DEFAULTS.height,
    ),
    samples: Annotated[int, typer.Option(help="Light paths traced for each pixel.")] = _DEFAULTS.samples,
    step: Annotated[float, typer.Option(help="Metres that the robot drives from frame to frame.")] = _DEFAULTS.step,
    seed: Annotated[int, typer.Option(help="Seed of the homes.")] = _DEFAULTS.seed,
    processes: Annotated[int | None, typer.Option(help="Rendering processes (default: one for each CPU core).")] = None,
) -> None:
    """Render household scenes with ground truth and captions.

    The same command continues a run that was stopped.
    """
    processes = os.cpu_count() or 1 if processes is None else processes
    if sequences < 1 or processes < 1:
        raise HouseholdError("--sequences and --processes must be at least 1")
    settings = RenderSettings(seed, frames, *size, samples, step)
    try:
        report = generate(output, settings, sequences, processes=processes)
    except KeyboardInterrupt:
        print("stopped; the same command continues after the last finished frame", file=sys.stderr)
        raise typer.Exit(130) from None
    print(f"{report.rendered} frames rendered, {report.skipped} were there; {report.frames_per_second:.3f} a second")


def main() -> int:
    """Run the command and return its exit status: 1 after an error, 2 after wrong options, 130 after Ctrl-C."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(household)
    try:
        app(prog_name="python -m simulation.household")
    except HouseholdError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
