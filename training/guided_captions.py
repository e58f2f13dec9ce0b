"""Caption photographs of known objects by a trained captioner: ``python -m training.guided_captions CHECKPOINT``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from recipes.caption_sets.dataset import MAX_USES
from recipes.guided_captions import make_guided_captions
from training.command_line import DataFolderOption, run_command
from training.errors import CheckpointError, DataError


def guided_captions(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint of the captioner: best.safetensors of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the data sets to write.")],
    data: DataFolderOption,
    noun_evidence: Annotated[Path, typer.Option(help="Folder that `python -m training.noun_evidence` made.")] = Path(
        "runs/noun_evidence"
    ),
    rooms: Annotated[Path, typer.Option(help="Folder that `python -m recipes.rooms` made.")] = Path("runs/rooms"),
    max_uses: Annotated[int, typer.Option(min=1, help="Photographs that may share one sentence.")] = MAX_USES,
) -> None:
    """Caption photographs that people labelled or described by a trained captioner, guided by what is there."""
    report = make_guided_captions(checkpoint, data, noun_evidence, rooms, output, max_uses)
    Console().print(report.table())


def main() -> int:
    return run_command(guided_captions, "python -m training.guided_captions", (CheckpointError, DataError))


if __name__ == "__main__":
    sys.exit(main())
