"""Ground truth for the detection benchmark as a file in COCO's format."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2

from smart_caption_ros.sources.acvr import ACVR_CLASSES, AcvrSequences
from training.configs.schema import DataConfig
from training.data.datasets import open_dataset
from training.detection.labels import read_labels
from training.errors import DataError
from training.paths import data_folder
from training.vision.detection_classes import DETECTION_CLASSES


class CocoAnnotations:
    """Boxes of images, to be written in COCO's format."""

    def __init__(self, categories: Mapping[int, str]) -> None:
        """
        Args:
            categories: names by id.
        """
        self._categories = [{"id": number, "name": name} for number, name in categories.items()]
        self._images: list[dict[str, Any]] = []
        self._boxes: list[dict[str, Any]] = []

    def add_image(self, name: str, width: int, height: int) -> None:
        """Add an image; its file name is absolute or relative to the folder of the images."""
        self._images.append({"id": len(self._images), "file_name": name, "width": width, "height": height})

    def add_box(self, category: int, box_xyxy: Sequence[float]) -> None:
        """Add a box, in pixels of the last image."""
        left, top, right, bottom = box_xyxy
        width, height = right - left, bottom - top
        self._boxes.append({
            "id": len(self._boxes) + 1, "image_id": self._images[-1]["id"], "category_id": category,
            "bbox": [left, top, width, height], "area": width * height, "iscrowd": 0,
        })  # fmt: skip

    def write(self, path: Path) -> Path:
        """Write the file and return its path."""
        content = {"images": self._images, "categories": self._categories, "annotations": self._boxes}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


def household_annotations(root: Path, folder: Path) -> Path:
    """Write the ground truth of sequences in ACVR's layout to a file in ``folder``.

    Raises:
        SourceError: there is no sequence, or one is malformed.
    """
    categories = {number: name for number, name in enumerate(ACVR_CLASSES) if number}
    numbers = {name: number for number, name in categories.items()}
    truth = CocoAnnotations(categories)
    for frame in AcvrSequences(root).frames():
        truth.add_image(str(frame.image_path.resolve()), frame.width, frame.height)
        for thing in frame.objects:
            truth.add_box(numbers[thing.class_name], thing.box_xyxy)
    return truth.write(folder / "household.json")


def labelled_photographs(labels: Path, dataset: str, count: int, minimum_score: float, folder: Path) -> Path:
    """Write photographs of a dev split, and a teacher's boxes of them, to files in ``folder``.

    Args:
        labels: file of ``python -m recipes.label_objects``.
        dataset: name of the data set.
        count: number of photographs, the first ones of the split that have labels.
        minimum_score: boxes with a lower score are left out.
        folder: for the photographs and the annotations.

    Returns:
        The file of annotations.

    Raises:
        DataError: the data set or its labels are missing or malformed.
    """
    photographs = open_dataset(DataConfig(dataset=dataset), data_folder())
    boxes_of = read_labels([str(labels)], Path(), DETECTION_CLASSES)
    names = [name for name in photographs.split("dev") if name in boxes_of.boxes][:count]
    if not names:
        raise DataError(f"{labels}: no photograph of the dev split has labels; label it with --splits dev")
    truth = CocoAnnotations(dict(enumerate(boxes_of.class_names)))
    for number, name in enumerate(names):
        frame, boxes = photographs.read_images([name])[0], boxes_of.boxes[name]
        cv2.imwrite(str(folder / f"{number}.png"), frame)
        height, width = frame.shape[:2]
        truth.add_image(f"{number}.png", width, height)
        sure = boxes.select(boxes.scores >= minimum_score)
        for box, class_id in zip(sure.xyxy, sure.class_ids.tolist(), strict=True):
            truth.add_box(class_id, (box * [width, height, width, height]).tolist())
    return truth.write(folder / "labelled.json")
