"""``python -m training.logit_adjustment``: make a trained captioner say rarer words."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from training.command_line import DataFolderOption, run_command
from training.data.datasets import open_dataset
from training.engine.checkpoint_captions import CheckpointCaptioner
from training.engine.logit_adjustment import AdjustmentError, adjust_logits, word_counts
from training.errors import CheckpointError, DataError


def adjust(
    model: Annotated[Path, typer.Argument(metavar="BEST", help="best.safetensors of a run.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="File to write, for the export.")],
    data: DataFolderOption,
    strength: Annotated[float, typer.Option(min=0.0, help="Share of the log frequency that is subtracted.")] = 0.2,
    end_penalty: Annotated[float, typer.Option(help="Subtracted from the logit of the end token.")] = 0.0,
) -> None:
    """Subtract a share of the log frequency of every word from its logit (Menon et al., ICLR 2021).

    Words are counted in the training captions of the run. Captions then have rarer words and are told apart more
    often; choose strength and end penalty by the scores on a dev split.
    """
    captioner = CheckpointCaptioner(model)
    try:
        counts = word_counts(open_dataset(captioner.experiment.data, data))
        adjust_logits(captioner.trained, counts, strength, end_penalty).save(output)
    except AdjustmentError as error:
        raise AdjustmentError(f"{model}: {error}") from None
    print(
        f"{output}: logits adjusted with strength {strength:g}, end penalty {end_penalty:g}; score it before it ships"
    )


def main() -> int:
    return run_command(adjust, "python -m training.logit_adjustment", (AdjustmentError, CheckpointError, DataError))


if __name__ == "__main__":
    sys.exit(main())
