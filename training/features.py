"""Make a feature store of photographs or of published features: ``python -m training.features``."""

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import torch
import typer

from smart_caption_ros.captioning import BundleError, EngineError
from smart_caption_ros.detection.class_names import DetectorError
from training.command_line import ThreadsOption, refuse_options, run_command
from training.configs.schema import FeaturesConfig
from training.data.feature_extraction import (
    BackboneExtractor,
    BundleExtractor,
    Ids,
    convert_features,
    fill_store,
    find_photographs,
)
from training.data.feature_store import SHARD_IMAGES, StoreReport
from training.errors import BackboneError, DataError
from training.paths import data_folder

Format: TypeAlias = Literal["hdf5", "tsv", "npz"]
"""Formats of published features."""


def features(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER|FILE...",
            help="Folder of photographs, folders in it included; with --from, the file, files or folder of features.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="STORE", help="Folder of the store.")],
    published: Annotated[
        Format | None, typer.Option("--from", help="Convert published features of this format (docs/data.md).")
    ] = None,
    width: Annotated[int, typer.Option(min=1, help="With --from: width of a feature.")] = FeaturesConfig.width,
    max_regions: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="With --from: regions of an image that are kept, as max_regions of the experiment; 0: all.",
        ),
    ] = None,
    image_sizes: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="JSON", help="With --from hdf5 or npz: annotation files of COCO with the sizes of the images."
        ),
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Bundle whose vision graph makes the features (default: the one that ships).")
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Backbone that makes the features: hf/..., timm/..., as in experiments."),
    ] = None,
    detector: Annotated[
        Path | None, typer.Option(metavar="ONNX", help="Pool the tokens inside the boxes of this detector.")
    ] = None,
    minimum_score: Annotated[float, typer.Option(help="Lowest score of a box of the detector.")] = 0.2,
    ids: Annotated[Ids, typer.Option(help="How file names become image ids.")] = "name",
    engine: Annotated[str, typer.Option(help="Engine (auto: the fastest that works).")] = "auto",
    threads: ThreadsOption = None,
    save_every: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Images per file; those that are not yet written are lost when the command is killed.",
        ),
    ] = SHARD_IMAGES,
    batch_size: Annotated[int, typer.Option(min=1, help="Photographs per batch.")] = 16,
) -> int:
    """Make a feature store of a folder of photographs, or of published features.

    The same command continues a run that was stopped, and adds images that are new.

    \b
    Image ids of photographs:
      name    file name, as in Flickr8k: 1000268201_693b08cb0e.jpg
      stem    the file name without suffix
      number  the number at the end of the name, as in COCO: COCO_val2014_000000391895.jpg is 391895
    """
    if published is not None:
        refuse_options(
            context, ("ids", "engine", "threads", "batch_size", "minimum_score"), "photographs, not for --from"
        )
        if bundle or backbone or detector:
            raise DataError(
                "--bundle and --detector make features of photographs, as --backbone does: leave them out with --from"
            )
        if max_regions is None:
            raise DataError("--from needs --max-regions: that of the experiment, 50 or 100 in the recipes; 0 keeps all")
        report = convert_features(
            published, paths, output, width, max_regions, save_every, image_sizes=image_sizes or ()
        )
    elif len(paths) > 1:
        raise DataError(f"give one folder of photographs, not {len(paths)} paths")
    else:
        refuse_options(context, ("width", "max_regions", "image_sizes"), "features of --from")
        if not detector:
            refuse_options(context, ["minimum_score"], "a --detector")
        photographs = find_photographs(paths[0], ids)
        extractor: BackboneExtractor | BundleExtractor
        if backbone:
            if bundle or detector:
                raise DataError("--backbone makes features by itself: leave out --bundle and --detector")
            refuse_options(context, ["engine"], "bundles, not for --backbone")
            if threads:
                torch.set_num_threads(threads)
            extractor = BackboneExtractor(backbone, data_folder())
        else:
            if detector and not 0 <= minimum_score <= 1:
                raise DataError(f"--minimum-score must lie between 0 and 1, not {minimum_score}")
            extractor = BundleExtractor(bundle, engine, threads, detector, minimum_score)
        report = fill_store(extractor, photographs, output, batch_size=batch_size, save_every=save_every)
    return _print_report(report, paths, output, "images" if published else "photographs")


def _print_report(report: StoreReport, paths: list[Path], output: Path, kind: str) -> int:
    """Print what is in the store and what was left out, and return the exit status."""
    for reason in report.broken:
        print(f"left out: {reason}", file=sys.stderr)
    given = ", ".join(map(str, paths))
    print(f"{report.stored} {kind} of {given} are in {output}, {len(report.broken)} could not be read")
    return 1 if report.broken else 0


def main() -> int:
    errors = (BackboneError, BundleError, DataError, DetectorError, EngineError)
    return run_command(features, "python -m training.features", errors, "stopped; the same command continues")


if __name__ == "__main__":
    sys.exit(main())
