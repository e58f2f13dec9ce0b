"""``python -m training.contrast``: make a trained captioner tell a frame from others of the same kind of scene."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from training.command_line import DataFolderOption, run_command
from training.data.datasets import merge_provenance
from training.data.scene_photographs import PROVENANCE, scene_photographs
from training.engine.checkpoint_captions import CheckpointCaptioner
from training.engine.scene_contrast import ContrastSettings, make_contrastive
from training.errors import CheckpointError, DataError

_DEFAULTS = ContrastSettings()


def contrast(
    model: Annotated[Path, typer.Argument(metavar="BEST", help="best.safetensors of a run.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="File to write, for the export.")],
    data: DataFolderOption,
    strength: Annotated[
        float, typer.Option(min=0.0, help="Share of the difference of the log probabilities that is added.")
    ] = _DEFAULTS.strength,
    scenes: Annotated[
        int, typer.Option(min=1, help="Kinds of scenes inside buildings, in which captions are contrasted.")
    ] = _DEFAULTS.scenes,
    opening_words: Annotated[
        int, typer.Option(min=0, help="Words at the beginning of a caption that are not contrasted.")
    ] = _DEFAULTS.opening_words,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the language model of scenes.")] = _DEFAULTS.epochs,
    seed: Annotated[int, typer.Option(help="Seed of the kinds of scenes and of the language model.")] = _DEFAULTS.seed,
) -> None:
    """Raise the words that tell a frame from others of the same kind of scene (Vedantam et al., CVPR 2017).

    Kinds of scenes are found in coco_photographs, nyu_rooms and flickr8k of the data folder. A small language model
    learns what the captioner says in each of those inside buildings; the captioner does not change. Choose the strength
    by the scores on a dev split.
    """
    captioner = CheckpointCaptioner(model)
    settings = ContrastSettings(strength, scenes, opening_words=opening_words, epochs=epochs, seed=seed)
    try:
        made = make_contrastive(
            captioner.trained, scene_photographs(data), settings, captioner.experiment.data.max_words
        )
    except CheckpointError as error:
        raise CheckpointError(f"{model}: {error}") from None
    known = made.record.get("backbone_trained_on", [])
    made.record["backbone_trained_on"] = merge_provenance(known, PROVENANCE)
    made.save(output)
    inside, elsewhere = made.record["contrast"]["photographs"]
    print(f"{output}: contrast of strength {strength:g}, from {inside} photographs inside and {elsewhere} elsewhere")


def main() -> int:
    return run_command(contrast, "python -m training.contrast", (CheckpointError, DataError))


if __name__ == "__main__":
    sys.exit(main())
