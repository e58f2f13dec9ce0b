"""Caption real photographs of rooms: ``python -m recipes.rooms -o FOLDER``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from recipes.rooms.dataset import DEV_PHOTOGRAPHS, make_dataset
from training.command_line import DataFolderOption, run_command
from training.errors import DataError


def rooms(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the data set to write.")],
    data: DataFolderOption,
    dev: Annotated[int, typer.Option(min=1, help="Photographs to hold out.")] = DEV_PHOTOGRAPHS,
) -> None:
    """Caption real photographs of rooms, each from the best sources that are available for it.

    The same command continues a run that was stopped.
    """
    report = make_dataset(data, output, dev)
    Console().print(report.table())
    if report.uncaptioned:
        print(f"{report.uncaptioned} photographs have no caption: no source says anything about them with certainty")


def main() -> int:
    return run_command(
        rooms, "python -m recipes.rooms", (DataError,), "stopped; the same command continues after the last photograph"
    )


if __name__ == "__main__":
    sys.exit(main())
