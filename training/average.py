"""``python -m training.average``: average the weights of trained captioners."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from training.command_line import run_command
from training.engine.joining import average_captioners
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError


def average(
    models: Annotated[list[Path], typer.Argument(metavar="BEST", help="best.safetensors of two or more runs.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="File to write, for the export.")],
) -> None:
    """Average the weights of runs that began with the same model (a model soup: Wortsman et al., ICML 2022).

    Runs that fine-tune one model with different seeds or photographs end in the same basin of the loss; the mean of
    their weights is nearly as good as their ensemble, at the cost of one model.
    """
    if repeated := [path for path in models if models.count(path) > 1]:
        raise CheckpointError(f"{repeated[0]} is named twice; each model counts once")
    average_captioners({str(path): TrainedCaptioner.load(path) for path in models}).save(output)
    print(f"{output}: the average of {len(models)} models; score it before it ships")


def main() -> int:
    return run_command(average, "python -m training.average", (CheckpointError,))


if __name__ == "__main__":
    sys.exit(main())
