"""Draw the boxes that a detector learns from: ``python -m training.label_objects -o FILE ...``.

Start the same command again to go on after a kill.
"""

import argparse
import sys
from pathlib import Path

import yaml
from tqdm import tqdm

from smart_caption_ros.captioning import Detector, DetectorError, EngineError
from training.arguments import positive
from training.commands import exit_status
from training.data.datasets import DATASETS
from training.datagen.teachers.boxes import Renderer, Teacher
from training.detection.labels import LabelWriter
from training.errors import DataError
from training.paths import data_folder

EXAMPLES = """examples:
  python -m training.label_objects --dataset flickr8k -o flickr8k.jsonl
  python -m training.label_objects --dataset coco -o rooms.jsonl \\
      --options '{captions: {train: rooms/captions_train.json, dev: rooms/captions_dev.json}, photographs: rooms}'
  python -m training.label_objects --household ROOT -o household.jsonl
"""


def main() -> int:
    arguments = _parser().parse_args()
    said = (DataError, DetectorError, EngineError)
    return exit_status(lambda: run(arguments), said, arguments.output, "stopped; the same command goes on")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.label_objects", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--dataset", choices=tuple(DATASETS), help="photographs to show to the detector")
    what.add_argument("--household", type=Path, metavar="ROOT", help="rendered sequences, whose objects are known")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="file of labels to write")
    parser.add_argument(
        "--options", default="{}", metavar="YAML", help="of the data set, as under data: options: of an experiment"
    )
    parser.add_argument("--splits", nargs="+", default=["train", "dev"], help="to label (default: train dev)")
    parser.add_argument(
        "--detector", type=Path, metavar="ONNX", help="(default: detectors/yolox_nano.onnx of the data folder)"
    )
    parser.add_argument(
        "--minimum-score", type=float, default=0.15,
        help="boxes below it are left out (default: %(default)s; the loss weighs a box by its score)",
    )  # fmt: skip
    parser.add_argument("--engine", default="auto", help="that runs the detector (default: the fastest that works)")
    parser.add_argument("--threads", type=positive, help="CPU threads of the engine (default: its own choice)")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Label what is not labelled yet.

    Raises:
        DataError: the data set is missing or malformed, or the file was begun with other settings.
        DetectorError, EngineError: the detector is missing, of no known layout, or cannot be run.
    """
    source = Renderer(arguments.household) if arguments.household else _teacher(arguments)
    with LabelWriter(arguments.output, source.header) as writer:
        todo = [image for image in source.images if image not in writer.done]
        boxes = 0
        with tqdm(total=len(source.images), initial=len(source.images) - len(todo), unit="image") as progress:
            for found in source.label(todo):
                writer.add(found.image, found.boxes, found.classes, found.scores)
                boxes += len(found.boxes)
                progress.update()
        writer.finish()
    print(f"{arguments.output}: {len(source.images)} photographs, {boxes} boxes in {len(todo)} that were new")


def _teacher(arguments: argparse.Namespace) -> Teacher:
    if not 0 < arguments.minimum_score <= 1:
        raise DataError(f"--minimum-score must lie above 0 and be at most 1, not {arguments.minimum_score}")
    kind = DATASETS[arguments.dataset]
    try:
        options = kind.options(**yaml.safe_load(arguments.options))
    except (TypeError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"--options: {error}") from None
    dataset = kind.open(data_folder(), options)
    images = [image for split in arguments.splits for image in dataset.split(split)]
    dataset.check_photographs(images)
    path = arguments.detector or data_folder() / "detectors" / "yolox_nano.onnx"
    detector = Detector.from_onnx(path, arguments.engine, arguments.threads, arguments.minimum_score)
    return Teacher(detector, dataset, images)


if __name__ == "__main__":
    sys.exit(main())
