"""``python -m export.import_checkpoint FORMAT SOURCE -o BUNDLE``: a published captioner as a bundle."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from export.bundle import ExportError, check_destination
from export.import_checkpoint.m2 import read_m2
from export.import_checkpoint.object_relation import read_object_relation
from export.import_checkpoint.published import (
    ImportCheckpointError,
    ImportChoices,
    PublishedFormat,
    build,
    read_state_dict,
    read_words,
)
from export.import_checkpoint.region_bundle import trained_on_tokens_of, write_region_bundle
from export.import_checkpoint.transformers_models import PUBLISHED, SearchChoices, read_transformers_model
from export.import_checkpoint.x_linear import read_x_lan, read_x_transformer
from export.options import ExportOptions, Precision, Storage
from export.pipeline import export_bundle
from smart_caption_ros.captioning import Bundle, BundleError, EngineError
from training.command_line import refuse_options, run_command
from training.engine.trained_captioner import TrainedCaptioner
from training.errors import CheckpointError, DataError

FORMATS: dict[str, PublishedFormat] = {
    "m2": read_m2,
    "object-relation": read_object_relation,
    "x-lan": read_x_lan,
    "x-transformer": read_x_transformer,
}
"""The published state dicts by name, beside the models of transformers (:data:`PUBLISHED`). A new one is one module and
one line here."""
_CHECK_IMAGES = 10
_OF_TRANSFORMERS = ("prompt", "first_sentence", "image_size")
_OF_STATE_DICTS = ("vision", "vocabulary", "features", "heads", "attend_padding", "legacy_extra_skip")
_OF_GRAPHS = ("precision", "storage", "checkpoint", "check_images", "calibration", "no_static")


def import_checkpoint(
    context: typer.Context,
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join([*PUBLISHED, *FORMATS])}.")],
    source: Annotated[
        str,
        typer.Argument(
            help=f"For {', '.join(PUBLISHED)}: the folder of the model, or its id in the local cache of the Hugging "
            "Face hub. For the others: the published .pth file."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="BUNDLE", help="Folder to write.")],
    name: Annotated[str | None, typer.Option(help="Name of the bundle (default: the source's).")] = None,
    beam_size: Annotated[int | None, typer.Option(min=1, max=10, help="Beams (default: the published).")] = None,
    max_words: Annotated[
        int | None, typer.Option(min=2, help="Longest caption, end token included (default: the published).")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            help="Words before every caption, which are no part of it, or the question of a chat model (default: the "
            "published; '': none)."
        ),
    ] = None,
    first_sentence: Annotated[
        bool, typer.Option("--first-sentence", help="End captions with their first sentence.")
    ] = False,
    image_size: Annotated[
        int | None, typer.Option(help="Width and height of the frames, pixels (default: the published).")
    ] = None,
    precision: Annotated[
        Precision,
        typer.Option(help="Precision of computing: float16 is for GPUs, int8 (8-bit weights) for CPUs."),
    ] = "float32",
    storage: Annotated[Storage, typer.Option(help="Storage of weights that are computed in float32.")] = "float16",
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a checkpoint, start_from of an experiment that fine-tunes it."),
    ] = None,
    check_images: Annotated[int, typer.Option(min=1, help="Photographs to compare with torch.")] = _CHECK_IMAGES,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Photographs to compare on (default: COCO's, or frames that ship)."),
    ] = None,
    no_static: Annotated[
        bool, typer.Option("--no-static", help="Leave out the form for TensorRT and CUDA graphs.")
    ] = False,
    vision: Annotated[
        Path | None,
        typer.Option(
            metavar="BUNDLE",
            help=f"For {', '.join(FORMATS)}: the bundle whose vision graph makes the features of the checkpoint.",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help=f"For {', '.join(FORMATS)}: words of the checkpoint, a line each by the published id, or JSON with a "
            "list or `itos`."
        ),
    ] = None,
    features: Annotated[
        str, typer.Option(help="HDF5 file of the checkpoint's region features, below the data folder or absolute.")
    ] = "coco_detections.hdf5",
    heads: Annotated[
        int | None, typer.Option(min=1, help="Attention heads (default: those of the published configuration).")
    ] = None,
    attend_padding: Annotated[
        bool,
        typer.Option("--attend-padding", help="Attend to padded regions, as the published M2 code does by mistake."),
    ] = False,
    legacy_extra_skip: Annotated[
        bool,
        typer.Option(
            "--legacy-extra-skip", help="For an Object Relation Transformer that was trained with this option."
        ),
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing bundle.")] = False,
) -> None:
    """Import a published captioner: the same log probabilities and beams, in the names and graphs of this project.

    A model of transformers becomes a whole bundle. So does a checkpoint of region features with --vision; without, its
    bundle has no vision graph: it captions stored region features, by the checkpoint in it
    (captioner.safetensors, for `python -m training.evaluate --checkpoint`).
    """
    check_destination(output, replace=replace)
    if format_name in PUBLISHED:
        refuse_options(context, _OF_STATE_DICTS, ", ".join(FORMATS))
        trained = read_transformers_model(
            format_name, source, name, SearchChoices(beam_size, max_words, prompt, first_sentence)
        )
        trained.set_image_size(image_size)
    elif format_name in FORMATS:
        refuse_options(context, _OF_TRANSFORMERS, ", ".join(PUBLISHED))
        if vision is None:
            refuse_options(context, _OF_GRAPHS, "bundles with --vision")
        else:
            refuse_options(context, ["features"], "bundles without --vision")
        if vocabulary is None:
            raise typer.BadParameter(f"{format_name} needs it", param_hint="--vocabulary")
        file = Path(source)
        words = read_words(vocabulary)
        state = read_state_dict(file)
        try:
            model = FORMATS[format_name](state, words, ImportChoices(heads, attend_padding, legacy_extra_skip))
            captioner = build(model, state)
        except ImportCheckpointError as error:
            raise ImportCheckpointError(f"{file}: {error}") from None
        settings = {"beam_size": beam_size or model.beam_size, "max_words": max_words or model.max_words}
        if vision is None:
            written = write_region_bundle(
                output, model, captioner, name=name or file.stem, origin=f"{format_name} checkpoint {file.name}",
                features=features, replace=replace, **settings,
            )  # fmt: skip
            parameters = sum(parameter.numel() for parameter in captioner.parameters())
            print(f"{output}: {model.family}, {parameters:,} parameters, {written / 1e6:.1f} MB")
            return
        trained = trained_on_tokens_of(Bundle.load(vision), model, captioner, name=name or file.stem, **settings)
    else:
        raise typer.BadParameter(f"{format_name!r} is none of {', '.join([*PUBLISHED, *FORMATS])}", param_hint="FORMAT")
    _write(
        trained,
        ExportOptions(
            checkpoint=checkpoint or Path(source), bundle=output, precision=precision, storage=storage,
            static=not no_static, vision_from=vision,
            check_images=check_images, calibration=calibration, replace=replace,
        ),
        checkpoint,
    )  # fmt: skip


def _write(trained: TrainedCaptioner, options: ExportOptions, checkpoint: Path | None) -> None:
    """Write the bundle and, if so, the checkpoint; print what was written."""
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        trained.save(checkpoint)
    search = trained.search
    print(
        f"{trained.record['name']}: {trained.family}, {len(trained.vocabulary):,} pieces, {search.beam_size} beams, "
        f"{search.min_words} to {search.max_words} words, length penalty {search.length_penalty:g}",
        flush=True,
    )
    written = export_bundle(options, trained)
    size = sum(file["bytes"] for file in written.manifest["files"].values())
    parameters = written.manifest["architecture"]["parameters"]
    print(f"{written.path}: {trained.family}, {parameters:,} parameters, {size / 1e6:.1f} MB")


def main() -> int:
    errors = (BundleError, CheckpointError, DataError, EngineError, ExportError, ImportCheckpointError, ValueError)
    return run_command(import_checkpoint, "python -m export.import_checkpoint", errors)


if __name__ == "__main__":
    sys.exit(main())
