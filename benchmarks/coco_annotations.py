"""Ground truth for the detection benchmark as a file in COCO's format."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smart_caption_ros.sources.acvr import ACVR_CLASSES, AcvrSequences


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
