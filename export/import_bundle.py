"""``python -m export.import_bundle BUNDLE -o CHECKPOINT``: a bundle as a checkpoint."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.captioning import Bundle, BundleError
from training.command_line import run_command
from training.engine.bundle_captioner import trained_captioner_of
from training.errors import BackboneError, CheckpointError


def import_bundle(
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle, e.g. smart_caption_ros/bundles/default.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="CHECKPOINT", help="Safetensors file to write, e.g. runs/d.safetensors."
        ),
    ],
) -> None:
    """Write the checkpoint of a bundle, for `python -m training.evaluate` or as start_from of an experiment.

    Weights that the bundle stores in 16 or 8 bits keep what rounding left of them.
    """
    trained = trained_captioner_of(Bundle.load(bundle))
    output.parent.mkdir(parents=True, exist_ok=True)
    trained.save(output)
    parameters = sum(parameter.numel() for parameter in trained.captioner.parameters())
    print(f"{output}: {trained.record['name']}, a captioner of the family {trained.family}, {parameters:,} parameters")


def main() -> int:
    return run_command(import_bundle, "python -m export.import_bundle", (BackboneError, BundleError, CheckpointError))


if __name__ == "__main__":
    sys.exit(main())
