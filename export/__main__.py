"""``python -m export CHECKPOINT BUNDLE``: export a trained captioner as a bundle, compared with torch."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from export.bundle import ExportError
from export.options import ExportOptions, Precision, Storage
from export.pipeline import export_bundle, export_vision_bundle
from smart_caption_ros.captioning import BundleError, EngineError
from smart_caption_ros.captioning.bundle import VisionBundle
from training.command_line import refuse_options, run_command
from training.errors import BackboneError, CheckpointError

_OF_CAPTIONERS = (
    "beam_size", "vision_from", "max_words", "repeat_penalty", "end_penalty", "no_guide", "no_static",
)  # fmt: skip
"""Options that have no effect with --vision-only."""


def export(
    context: typer.Context,
    checkpoint: Annotated[
        str, typer.Argument(help="best.safetensors of a run; with --vision-only also the name of a backbone.")
    ],
    bundle: Annotated[Path, typer.Argument(help="Folder to write.")],
    name: Annotated[str | None, typer.Option(help="Name of the bundle (default: the experiment's).")] = None,
    precision: Annotated[
        Precision,
        typer.Option(help="Precision of computing: float16 is for GPUs, int8 (8-bit weights) for CPUs."),
    ] = "float32",
    storage: Annotated[
        Storage,
        typer.Option(
            help="Storage of weights that are computed in float32; int8: the backbone's, others as float16; "
            "with --vision-only int8 is float16."
        ),
    ] = "float16",
    beam_size: Annotated[
        int | None, typer.Option(min=1, max=10, help="Beams of the search (default: the checkpoint's).")
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(
            min=32,
            help="Width and height in pixels of the frames that the bundle takes, a multiple of 32 (default: the "
            "checkpoint's, 224); larger ones take longer.",
        ),
    ] = None,
    vision_from: Annotated[
        Path | None,
        typer.Option(
            metavar="BUNDLE", help="For a captioner of stored features: the bundle whose vision graph computed them."
        ),
    ] = None,
    max_words: Annotated[
        int | None, typer.Option(help="Longest caption, end token included (default: the checkpoint's).")
    ] = None,
    repeat_penalty: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Natural logarithm that the search subtracts for a content word that the caption has already "
            "(default: the checkpoint's).",
        ),
    ] = None,
    end_penalty: Annotated[
        float | None,
        typer.Option(
            help="Natural logarithm that the search subtracts from the logit of the end token, so that captions become "
            "longer (default: the checkpoint's)."
        ),
    ] = None,
    no_detector: Annotated[
        bool, typer.Option("--no-detector", help="Leave out the backbone's object detector.")
    ] = False,
    detector_score: Annotated[float, typer.Option(min=0, max=1, help="Objects below this score are left out.")] = 0.3,
    no_guide: Annotated[
        bool, typer.Option("--no-guide", help="Leave out the inputs by which objects guide the search (objects_guide).")
    ] = False,
    no_static: Annotated[
        bool, typer.Option("--no-static", help="Leave out the form for TensorRT and CUDA graphs.")
    ] = False,
    vision_only: Annotated[
        bool,
        typer.Option("--vision-only", help="Write the vision graph alone, for features (docs/backbones.md)."),
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing bundle.")] = False,
    check_images: Annotated[int, typer.Option(min=1, help="Photographs to compare with torch.")] = 100,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Photographs to compare with torch on (default: the run's dev split, or frames that ship).",
        ),
    ] = None,
) -> None:
    """Export a trained captioner as a bundle and compare its captions with torch's."""
    if vision_only:
        refuse_options(context, _OF_CAPTIONERS, "captioners, not for --vision-only")
    if no_detector:
        refuse_options(context, ["detector_score"], "bundles with a detector, not for --no-detector")
    options = ExportOptions(
        checkpoint=Path(checkpoint), bundle=bundle, name=name, precision=precision, storage=storage,
        beam_size=beam_size, vision_from=vision_from, max_words=max_words, image_size=image_size,
        detector=not no_detector, detector_score=detector_score,
        guided=not no_guide, static=not no_static, replace=replace, check_images=check_images, calibration=calibration,
        repeat_penalty=repeat_penalty, end_penalty=end_penalty,
    )  # fmt: skip
    if vision_only:
        exported = export_vision_bundle(options, checkpoint)
        print(
            f"tokens of {exported.photographs}: {exported.error:.2%} from torch's (root mean square), cosine at least "
            f"{exported.similarity:.4f}"
        )
        written: VisionBundle = exported.bundle
    else:
        written = export_bundle(options)
    size = sum(file["bytes"] for file in written.manifest["files"].values())
    print(f"{written.path}: {size / 1e6:.1f} MB")


def main() -> int:
    errors = (BackboneError, BundleError, CheckpointError, EngineError, ExportError, ValueError)
    return run_command(export, "python -m export", errors)


if __name__ == "__main__":
    sys.exit(main())
