"""COCO ground truth: ``instances_*.json`` and a folder of images."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.detection.boxes import Box, four_numbers
from smart_caption_ros.imaging import read_image_size
from smart_caption_ros.sources.ground_truth import (
    GroundTruth,
    GroundTruthFrame,
    GroundTruthObject,
    Oddities,
    Oddity,
)
from smart_caption_ros.sources.json_members import read_text
from smart_caption_ros.sources.source import SourceError


@dataclass(frozen=True)
class _Image:
    file_name: str
    size: tuple[Any, Any]
    """Width and height as the file has them; COCO always does."""
    objects: list[tuple[str, int, Box]]
    """Class, annotation id, and the box with exclusive corners."""


class CocoInstances(GroundTruth):
    """Each file is a sequence, called by its stem; its frames are its images, called by their ids and in
    that order.

    The folder may hold more images than the files list. Objects marked as a crowd count: they are there.

    Args:
        paths: instances files; unlike labels of ACVR they are held in memory, without their polygons.
        images: the folder with their images.

    Raises:
        SourceError: a file or the folder is missing, or a file is no list of COCO instances; one sentence.
    """

    def __init__(self, paths: Sequence[Path], images: Path) -> None:
        super().__init__(", ".join(str(path) for path in paths))
        if not images.is_dir():
            raise SourceError(f"{images}: no such folder of images")
        self._images_folder = images
        self._sequences: dict[str, dict[int, _Image]] = {}
        for path in paths:
            if path.stem in self._sequences:
                raise SourceError(f"{path}: two files are called {path.stem}; rename one, results go by that name")
            self._sequences[path.stem] = _read_instances(path, self._found_at_opening)
        if not any(self._sequences.values()):
            raise SourceError(f"{self.spec}: no images are listed")

    @property
    def lengths(self) -> Mapping[str, int]:
        return {name: len(images) for name, images in self._sequences.items()}

    def sequence_frames(self, sequence: str, every: int) -> Iterator[GroundTruthFrame]:
        for index, (number, image) in enumerate(self._sequences[sequence].items()):
            if index % every:
                continue
            path = self._images_folder / image.file_name
            name = f"{sequence}/{number}"
            if not path.is_file():
                self.oddities.add(Oddity.FRAME_WITHOUT_IMAGE, name)
                continue
            try:
                size = read_image_size(path)
            except ValueError:
                self.oddities.add(Oddity.UNREADABLE_IMAGE, name)
                continue
            if size != image.size:
                self.oddities.add(Oddity.IMAGE_OF_ANOTHER_SIZE, name)
                continue
            made = (
                self._object(class_name, annotation, box, size, f"{name}, annotation {annotation}")
                for class_name, annotation, box in image.objects
            )
            objects: tuple[GroundTruthObject, ...] = tuple(each for each in made if each is not None)
            yield GroundTruthFrame(sequence, str(number), index, path, *size, objects)


def _read_instances(path: Path, oddities: Oddities) -> dict[int, _Image]:
    """The images by their ids, in order."""
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not JSON: {error}") from None
    parts = [content.get(key) if isinstance(content, dict) else None for key in ("images", "annotations", "categories")]
    if not all(isinstance(part, list) for part in parts):
        raise SourceError(f"{path} is no list of COCO instances: it must hold images, annotations and categories")
    # What is no object has nothing that is looked for, and counts as malformed below.
    listed, annotations, categories = (
        [each if isinstance(each, dict) else {} for each in part] for part in parts if isinstance(part, list)
    )
    names = {each.get("id"): each.get("name") for each in categories if isinstance(each.get("id"), int)}
    images: dict[int, _Image] = {}
    for image in listed:
        number, file_name = image.get("id"), image.get("file_name")
        if not isinstance(number, int) or not isinstance(file_name, str) or not file_name:
            oddities.add(Oddity.MALFORMED_FRAME, f"{path.stem}, image {number!r}")
        elif number in images:
            oddities.add(Oddity.REPEATED_FRAME, f"{path.stem}, image {number}")
        else:
            images[number] = _Image(file_name, (image.get("width"), image.get("height")), [])
    for annotation in annotations:
        number, category, owner = (annotation.get(key) for key in ("id", "category_id", "image_id"))
        where = f"{path.stem}, annotation {number!r}"
        box = four_numbers(annotation.get("bbox"))
        if not (isinstance(number, int) and isinstance(category, int) and isinstance(owner, int)) or box is None:
            oddities.add(Oddity.MALFORMED_OBJECT, where)
            continue
        name = names.get(category)
        if owner not in images:
            oddities.add(Oddity.OBJECT_WITHOUT_FRAME, where)
        elif not isinstance(name, str) or not name.strip():
            oddities.add(Oddity.UNKNOWN_CLASS, f"{where}, category {category!r}")
        else:
            left, top, width, height = box
            images[owner].objects.append((name, number, (left, top, left + width, top + height)))
    return dict(sorted(images.items()))
