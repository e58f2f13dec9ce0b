"""Render household scenes with ground truth and captions. Start it again to go on after a kill."""

import argparse
import os
import sys
from pathlib import Path

from training.datagen.household.errors import HouseholdError
from training.datagen.household.generate import generate
from training.datagen.household.sequences import Settings


def main() -> int:
    defaults = Settings()
    parser = argparse.ArgumentParser(prog="python -m training.household", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="ROOT", help="folder of the sequences")
    parser.add_argument("--sequences", type=int, default=4, help="how many (default: %(default)s)")
    parser.add_argument("--frames", type=int, default=defaults.frames, help="frames of each (default: %(default)s)")
    parser.add_argument(
        "--size",
        type=int,
        nargs=2,
        default=(defaults.width, defaults.height),
        metavar=("WIDTH", "HEIGHT"),
        help="of a frame in pixels (default: 320 240)",
    )
    parser.add_argument(
        "--samples", type=int, default=defaults.samples, help="light paths a pixel (default: %(default)s)"
    )
    parser.add_argument(
        "--step",
        type=float,
        default=defaults.step,
        help="metres that the robot drives from frame to frame (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=defaults.seed, help="another seed, other homes (default: %(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="renderers at work at once (default: one a core)"
    )
    arguments = parser.parse_args()
    width, height = arguments.size
    try:
        if arguments.sequences < 1 or arguments.processes < 1:
            raise ValueError("--sequences and --processes must be at least 1")
        settings = Settings(arguments.seed, arguments.frames, width, height, arguments.samples, arguments.step)
        report = generate(arguments.output, settings, arguments.sequences, processes=arguments.processes)
    except (HouseholdError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on after the last finished frame", file=sys.stderr)
        return 130
    print(f"{report.rendered} frames rendered, {report.skipped} were there; {report.frames_per_second:.3f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
