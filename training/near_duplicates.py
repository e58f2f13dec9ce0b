"""Find training photographs that show the same as measured ones: ``python -m training.near_duplicates``."""

import csv
import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from recipes.near_duplicates import (
    Pair,
    measured_photographs,
    pictures_of_one_series,
    same_pictures,
    training_photographs,
)
from smart_caption_ros.files import write_bytes_atomically
from training.command_line import DataFolderOption, run_command
from training.data.held_out import NEAR_DUPLICATES
from training.errors import DataError


def near_duplicates(
    data: DataFolderOption,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="CSV", help="Table of the photographs that are left out.")
    ] = NEAR_DUPLICATES,
) -> None:
    """Find photographs for training that show the same as one of a dev, test or benchmark set, or of the demo.

    No data set of this project has the photographs of the table that is written.
    """
    training, measured = training_photographs(data), measured_photographs(data)
    pairs = [*same_pictures(training, measured), *pictures_of_one_series(training, measured)]
    best: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        key = (pair.photograph, pair.measured)
        best[key] = max(pair, best.get(key, pair), key=lambda each: each.points)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Pair._fields)
    writer.writerows(sorted(best.values()))
    write_bytes_atomically(output, text.getvalue().encode())
    table = Table()
    for field in Pair._fields:
        table.add_column(field, overflow="fold")
    for pair in sorted(best.values(), key=lambda pair: (-pair.points, pair.distance)):
        table.add_row(*map(str, pair))
    Console().print(table)
    print(f"{len(training)} photographs for training, {len(measured)} measured ones: {len(best)} pairs, in {output}")


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(near_duplicates, "python -m training.near_duplicates", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
