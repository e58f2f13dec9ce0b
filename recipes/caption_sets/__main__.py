"""Caption photographs that people labelled or described: ``python -m recipes.caption_sets -o FOLDER``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from recipes.caption_sets.dataset import MAX_USES, make_caption_sets
from training.command_line import DataFolderOption, run_command
from training.errors import BackboneError, DataError


def caption_sets(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the data sets to write.")],
    data: DataFolderOption,
    max_uses: Annotated[int, typer.Option(min=1, help="Photographs that may share one sentence.")] = MAX_USES,
) -> None:
    """Caption photographs that have labels, statements or questions but no captions by people.

    The same command continues a run that was stopped.
    """
    Console().print(make_caption_sets(data, output, max_uses).table())


def main() -> int:
    return run_command(
        caption_sets,
        "python -m recipes.caption_sets",
        (BackboneError, DataError),
        "stopped; the same command continues after the last photographs",
    )


if __name__ == "__main__":
    sys.exit(main())
