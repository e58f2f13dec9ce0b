"""COCO ground truth: ``instances_*.json`` and a folder of images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.detection.boxes import Box, four_numbers
from smart_caption_ros.sources.ground_truth import (
    DatasetIssue,
    DatasetIssues,
    GroundTruth,
    GroundTruthFrame,
    GroundTruthObject,
)
from smart_caption_ros.sources.json_files import read_json, whole_number
from smart_caption_ros.sources.source import SourceError


@dataclass(frozen=True)
class _Image:
    file_name: str
    size: tuple[int | None, int | None]
    """Width and height in the file, which may lack them."""
    objects: list[tuple[str, int, Box]]
    """Class, annotation id, and box."""


class CocoInstances(GroundTruth):
    """COCO instances files. Each file is a sequence named by its stem; its frames are named and sorted by image id.

    The folder may hold images that no file lists. Objects marked as a crowd count as objects. Ids may be numbers,
    numbers as text, or names.

    Args:
        paths: instances files; unlike ACVR's labels they are held in memory, without their polygons.
    """

    def __init__(self, paths: Sequence[Path], images: Path) -> None:
        super().__init__(", ".join(str(path) for path in paths))
        if not images.is_dir():
            raise SourceError(f"{images}: no such folder of images")
        self._images_folder = images
        self._sequences: dict[str, dict[int | str, _Image]] = {}
        for path in paths:
            if path.stem in self._sequences:
                raise SourceError(f"{path}: two files are called {path.stem}; rename one, results go by that name")
            self._sequences[path.stem] = _read_instances(path, self._found_at_opening)
        self.lengths = {name: len(listed) for name, listed in self._sequences.items()}
        if not any(self._sequences.values()):
            issues = "; ".join(self._found_at_opening.sentences())
            raise SourceError(f"{self.spec}: no images are listed" + (f" that can be used: {issues}" if issues else ""))

    def sequence_frames(self, sequence: str, every: int) -> Iterator[GroundTruthFrame]:
        for index, (number, image) in enumerate(self._sequences[sequence].items()):
            if index % every:
                continue
            path = self._images_folder / image.file_name
            name = f"{sequence}/{number}"
            if not path.is_file():
                self.issues.add(DatasetIssue.FRAME_WITHOUT_IMAGE, name)
                continue
            if (size := self._image_size(path, name)) is None:
                continue
            if any(given not in (None, side) for given, side in zip(image.size, size, strict=True)):
                self.issues.add(DatasetIssue.IMAGE_OF_ANOTHER_SIZE, name)
                continue
            made = (
                self._object(class_name, annotation, box, size, f"{name}, annotation {annotation}")
                for class_name, annotation, box in image.objects
            )
            objects: tuple[GroundTruthObject, ...] = tuple(target for target in made if target is not None)
            yield GroundTruthFrame(sequence, str(number), index, path, *size, objects)


def _id(value: Any) -> int | str | None:
    """Return an id as a number where it is one in some spelling, else as its text; None for anything else."""
    number = whole_number(value)
    return number if number is not None or not isinstance(value, str) or not value else value


def _read_instances(path: Path, issues: DatasetIssues) -> dict[int | str, _Image]:
    content = read_json(path)
    parts = [content.get(key) if isinstance(content, dict) else None for key in ("images", "annotations", "categories")]
    if not all(isinstance(part, list) for part in parts):
        raise SourceError(f"{path} is no list of COCO instances: it must hold images, annotations and categories")
    # Entries that are not JSON objects become empty ones, which count as malformed below.
    listed, annotations, categories = (
        [entry if isinstance(entry, dict) else {} for entry in part] for part in parts if isinstance(part, list)
    )
    names = {_id(category.get("id")): category.get("name") for category in categories}
    images: dict[int | str, _Image] = {}
    for image in listed:
        image_id, file_name = _id(image.get("id")), image.get("file_name")
        if image_id is None or not isinstance(file_name, str) or not file_name:
            issues.add(DatasetIssue.MALFORMED_FRAME, f"{path.stem}, image {image.get('id')!r}")
        elif image_id in images:
            issues.add(DatasetIssue.REPEATED_FRAME, f"{path.stem}, image {image_id}")
        else:
            size = whole_number(image.get("width")), whole_number(image.get("height"))
            images[image_id] = _Image(file_name, size, [])
    for position, annotation in enumerate(annotations):
        category, owner = _id(annotation.get("category_id")), _id(annotation.get("image_id"))
        where = f"{path.stem}, annotation {annotation.get('id')!r}"
        box = four_numbers(annotation.get("bbox"))
        if category is None or owner is None or box is None:
            issues.add(DatasetIssue.MALFORMED_OBJECT, where)
            continue
        name = names.get(category)
        if owner not in images:
            issues.add(DatasetIssue.OBJECT_WITHOUT_FRAME, where)
        elif not isinstance(name, str) or not name.strip():
            issues.add(DatasetIssue.UNKNOWN_CLASS, f"{where}, category {category!r}")
        else:
            left, top, width, height = box
            number = whole_number(annotation.get("id"))
            instance_id = position if number is None else number
            images[owner].objects.append((name, instance_id, (left, top, left + width, top + height)))
    return dict(sorted(images.items(), key=lambda item: (isinstance(item[0], str), item[0])))
