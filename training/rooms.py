"""Caption real photographs of rooms from the best source there is. Start it again to go on after a kill."""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from training.arguments import positive
from training.datagen.rooms.dataset import DEV_PHOTOGRAPHS, make
from training.datagen.rooms.errors import RoomsError
from training.paths import data_folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.rooms", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="where the data set goes")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the data (default: %(default)s)")
    parser.add_argument(
        "--dev", type=positive, default=DEV_PHOTOGRAPHS, help="photographs that are held out (default: %(default)s)"
    )
    arguments = parser.parse_args()
    try:
        report = make(arguments.data, arguments.output, arguments.dev)
    except RoomsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on after the last photograph", file=sys.stderr)
        return 130
    Console().print(report.table())
    if report.without:
        print(f"{report.without} photographs have no caption: nothing could be said of them with some certainty")
    return 0


if __name__ == "__main__":
    sys.exit(main())
