"""``python -m export.import_checkpoint FORMAT FILE --vocabulary V -o BUNDLE``: a published checkpoint as a bundle."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from export.bundle import ExportError
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
from export.import_checkpoint.region_bundle import write_region_bundle
from export.import_checkpoint.x_linear import read_x_lan, read_x_transformer
from training.command_line import run_command
from training.errors import DataError

FORMATS: dict[str, PublishedFormat] = {
    "m2": read_m2,
    "object-relation": read_object_relation,
    "x-lan": read_x_lan,
    "x-transformer": read_x_transformer,
}
"""The published formats by name. A new one is one module and one line here."""


def import_checkpoint(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    file: Annotated[Path, typer.Argument(help="The published .pth file.")],
    vocabulary: Annotated[
        Path,
        typer.Option(help="Words of the checkpoint: a line each by the published id, or JSON with a list or `itos`."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="BUNDLE", help="Folder to write.")],
    name: Annotated[str | None, typer.Option(help="Name of the bundle (default: the file's).")] = None,
    features: Annotated[
        str, typer.Option(help="HDF5 file of the checkpoint's region features, below the data folder or absolute.")
    ] = "coco_detections.hdf5",
    heads: Annotated[
        int | None, typer.Option(min=1, help="Attention heads (default: those of the published configuration).")
    ] = None,
    beam_size: Annotated[int | None, typer.Option(min=1, max=10, help="Beams (default: the published).")] = None,
    max_words: Annotated[
        int | None, typer.Option(min=2, help="Longest caption, end token included (default: the published).")
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
    """Import a published checkpoint: the same log probabilities and beams, in the names and graphs of this project.

    The bundle captions stored region features: it has the captioner's graph, its checkpoint for torch
    (captioner.safetensors, for `python -m training.evaluate --checkpoint`) and the vocabulary, but no vision graph.
    """
    if format_name not in FORMATS:
        raise typer.BadParameter(f"{format_name!r} is none of {', '.join(FORMATS)}", param_hint="FORMAT")
    words = read_words(vocabulary)
    state = read_state_dict(file)
    try:
        model = FORMATS[format_name](state, words, ImportChoices(heads, attend_padding, legacy_extra_skip))
        captioner = build(model, state)
    except ImportCheckpointError as error:
        raise ImportCheckpointError(f"{file}: {error}") from None
    written = write_region_bundle(
        output,
        model,
        captioner,
        name=name or file.stem,
        origin=f"{format_name} checkpoint {file.name}",
        features=features,
        beam_size=beam_size or model.beam_size,
        max_words=max_words or model.max_words,
        replace=replace,
    )
    parameters = sum(parameter.numel() for parameter in captioner.parameters())
    print(f"{output}: {model.family}, {parameters:,} parameters, {written / 1e6:.1f} MB")


def main() -> int:
    errors = (DataError, ExportError, ImportCheckpointError, ValueError)
    return run_command(import_checkpoint, "python -m export.import_checkpoint", errors)


if __name__ == "__main__":
    sys.exit(main())
