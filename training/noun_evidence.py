"""Collect which objects are known to be in photographs: ``python -m training.noun_evidence -o FOLDER``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from recipes.noun_evidence import write_noun_evidence
from training.command_line import DataFolderOption, run_command
from training.errors import DataError


def noun_evidence(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the files to write.")],
    data: DataFolderOption,
) -> None:
    """Collect which objects are in photographs, by people's labels and texts and by teacher networks.

    The same command continues a run that was stopped.
    """
    Console().print(write_noun_evidence(data, output).table())


def main() -> int:
    return run_command(
        noun_evidence,
        "python -m training.noun_evidence",
        (DataError,),
        "stopped; the same command continues after the last photograph",
    )


if __name__ == "__main__":
    sys.exit(main())
