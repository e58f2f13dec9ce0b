"""``python -m training.ensemble``: join trained captioners whose probabilities are averaged at every word."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from training.command_line import run_command
from training.engine.joining import join_captioners
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError


def ensemble(
    models: Annotated[list[Path], typer.Argument(metavar="BEST", help="best.safetensors of two or more runs.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="File to write, for the export.")],
) -> None:
    """Join captioners of any families to one whose word probabilities are the mean of theirs (M2, Sec. 5.2).

    They must have one vocabulary and the same visual tokens. The result is exported, evaluated and run as any other
    model, at the cost of all of its members.
    """
    join_captioners({str(path): TrainedCaptioner.load(path) for path in models}).save(output)
    print(f"{output}: an ensemble of {len(models)} models")


def main() -> int:
    return run_command(ensemble, "python -m training.ensemble", (CheckpointError,))


if __name__ == "__main__":
    sys.exit(main())
