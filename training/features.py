"""Make a feature store of a folder of photographs: ``python -m training.features``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from smart_caption_ros.captioning import BundleError, EngineError
from smart_caption_ros.detection.errors import DetectorError
from training.command_line import ThreadsOption, run_command
from training.data.feature_extraction import FeatureExtractor, Ids, fill_store, find_photographs
from training.data.feature_store_writer import SHARD_IMAGES
from training.errors import DataError


def features(
    folder: Annotated[Path, typer.Argument(help="Folder of photographs, folders in it included.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="STORE", help="Folder of the store.")],
    bundle: Annotated[
        Path | None, typer.Option(help="Bundle whose vision graph makes the features (default: the one that ships).")
    ] = None,
    detector: Annotated[
        Path | None, typer.Option(metavar="ONNX", help="Pool the tokens inside the boxes of this detector.")
    ] = None,
    minimum_score: Annotated[float, typer.Option(help="Lowest score of a box of the detector.")] = 0.2,
    ids: Annotated[Ids, typer.Option(help="How file names become image ids.")] = Ids.NAME,
    engine: Annotated[str, typer.Option(help="Engine (auto: the fastest that works).")] = "auto",
    threads: ThreadsOption = None,
    save_every: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Photographs per file; those that are not yet written are lost when the command is killed.",
        ),
    ] = SHARD_IMAGES,
    batch_size: Annotated[int, typer.Option(min=1, help="Photographs per batch.")] = 16,
) -> int:
    """Make a feature store of a folder of photographs.

    The same command continues a run that was stopped, and adds photographs that are new.

    \b
    Image ids:
      name    file name, as in Flickr8k: 1000268201_693b08cb0e.jpg
      stem    the file name without suffix
      number  the number at the end of the name, as in COCO: COCO_val2014_000000391895.jpg is 391895
    """
    photographs = find_photographs(folder, ids)
    extractor = FeatureExtractor(bundle, engine, threads)
    if detector:
        if not 0 <= minimum_score <= 1:
            raise DataError(f"--minimum-score must lie between 0 and 1, not {minimum_score}")
        extractor.pool_inside_boxes(detector, minimum_score)
    report = fill_store(extractor, photographs, output, batch_size=batch_size, save_every=save_every)
    for reason in report.broken:
        print(f"left out: {reason}", file=sys.stderr)
    print(f"{report.stored} photographs of {folder} are in {output}, {len(report.broken)} could not be read")
    return 1 if report.broken else 0


def main() -> int:
    """Run the command and return its exit status."""
    errors = (BundleError, DataError, DetectorError, EngineError)
    return run_command(features, "python -m training.features", errors, "stopped; the same command continues")


if __name__ == "__main__":
    sys.exit(main())
