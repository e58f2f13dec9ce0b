"""Label objects for detector training: ``python -m training.label_objects -o FILE ...``."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml
from tqdm import tqdm

from smart_caption_ros.captioning import Detector, DetectorError, EngineError
from training.command_line import ThreadsOption, run_command
from training.data.caption_dataset import CaptionDataset
from training.data.datasets import DATASETS
from training.datagen.teachers.boxes import DetectorLabels, RendererLabels
from training.detection.labels import LabelWriter
from training.errors import DataError
from training.paths import data_folder


def label_objects(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File of labels to write.")],
    dataset: Annotated[
        str | None, typer.Option(help=f"Data set whose photographs the detector labels: {', '.join(DATASETS)}.")
    ] = None,
    household: Annotated[
        Path | None, typer.Option(metavar="ROOT", help="Rendered sequences, whose objects are known.")
    ] = None,
    options: Annotated[
        str, typer.Option(metavar="YAML", help="Options of the data set, as under data: options: of an experiment.")
    ] = "{}",
    splits: Annotated[list[str], typer.Option(help="Splits to label.")] = ["train", "dev"],  # noqa: B006
    detector: Annotated[
        Path | None,
        typer.Option(metavar="ONNX", help="Detector (default: detectors/yolox_nano.onnx of the data folder)."),
    ] = None,
    minimum_score: Annotated[
        float, typer.Option(help="Drop boxes with a lower score; the loss weighs each box by its score.")
    ] = 0.15,
    engine: Annotated[str, typer.Option(help="Engine that runs the detector (auto: the fastest that works).")] = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Label objects for detector training: by a detector, or by the renderer of household frames.

    The same command continues a run that was stopped.

    \b
    Examples:
      python -m training.label_objects --dataset flickr8k -o flickr8k.jsonl
      python -m training.label_objects --dataset coco -o rooms.jsonl \\
          --options '{captions: {train: rooms/captions_train.json, dev: rooms/captions_dev.json}, photographs: rooms}'
      python -m training.label_objects --household ROOT -o household.jsonl
    """
    if (dataset is None) == (household is None):
        raise typer.BadParameter("give either --dataset or --household")
    if dataset is not None and dataset not in DATASETS:
        raise typer.BadParameter(f"{dataset!r} is not one of {', '.join(DATASETS)}", param_hint="--dataset")
    labels: DetectorLabels | RendererLabels
    if household is not None:
        labels = RendererLabels(household)
    else:
        if not 0 < minimum_score <= 1:
            raise DataError(f"--minimum-score must lie above 0 and be at most 1, not {minimum_score}")
        photographs, images = _open(str(dataset), options, splits)
        path = detector or data_folder() / "detectors" / "yolox_nano.onnx"
        labels = DetectorLabels(Detector.from_onnx(path, engine, threads, minimum_score), photographs, images)
    with LabelWriter(output, labels.header) as writer:
        todo = [image for image in labels.images if image not in writer.done]
        boxes = 0
        with tqdm(total=len(labels.images), initial=len(labels.images) - len(todo), unit="image") as progress:
            for found in labels.label(todo):
                writer.add(found.image, found.boxes, found.classes, found.scores)
                boxes += len(found.boxes)
                progress.update()
        writer.finish()
    print(f"{output}: {len(labels.images)} photographs, {boxes} boxes in {len(todo)} that were new")


def _open(dataset: str, options: str, splits: list[str]) -> tuple[CaptionDataset, list[str]]:
    """Open a data set and list the images of its splits."""
    kind = DATASETS[dataset]
    try:
        checked = kind.options(**yaml.safe_load(options))
    except (TypeError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"--options: {error}") from None
    opened = kind.open(data_folder(), checked)
    images = [image for split in splits for image in opened.split(split)]
    opened.check_photographs(images)
    return opened, images


def main() -> int:
    errors = (DataError, DetectorError, EngineError)
    return run_command(label_objects, "python -m training.label_objects", errors, "stopped; the same command continues")


if __name__ == "__main__":
    sys.exit(main())
