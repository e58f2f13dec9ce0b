"""A folder of photographs, with the objects that a detector finds in place of ground truth."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.sources.ground_truth import DatasetIssue, GroundTruth, GroundTruthFrame
from smart_caption_ros.sources.image_folder import ImageFolder
from smart_caption_ros.sources.source import SourceError

Detect = Callable[[NDArray[np.uint8]], Sequence[DetectedObject]]


class DetectedFolder(GroundTruth):
    """The photographs of a folder as one sequence; a frame's name is its file's name.

    The detector runs once on each photograph, even in several passes. Sub-folders are not searched.

    Args:
        detect: detects the objects in an image, uint8 HxWx3 BGR.
    """

    def __init__(self, folder: Path, detect: Detect) -> None:
        super().__init__(str(folder))
        if not folder.is_dir():
            raise SourceError(f"{folder}: no such folder; give one of photographs")
        self._paths = ImageFolder(str(folder)).paths
        self._name = folder.resolve().name
        self.lengths = {self._name: len(self._paths)}
        self._detect = detect
        self._frames: dict[int, GroundTruthFrame | None] = {}

    def sequence_frames(self, sequence: str, every: int) -> Iterator[GroundTruthFrame]:
        for index in range(0, len(self._paths), every):
            if index not in self._frames:
                self._frames[index] = self._frame(index)
            frame = self._frames[index]
            if frame is None:
                self.issues.add(DatasetIssue.UNREADABLE_IMAGE, f"{self._name}/{self._paths[index].name}")
            else:
                yield frame

    def _frame(self, index: int) -> GroundTruthFrame | None:
        path = self._paths[index]
        try:
            image_bgr = read_image(path)
        except ImageError:
            return None
        height, width = image_bgr.shape[:2]
        name = f"{self._name}/{path.name}"
        made = [
            self._object(detected.class_name, number, detected.box_xyxy, (width, height), f"{name}, detection {number}")
            for number, detected in enumerate(self._detect(image_bgr))
        ]
        objects = tuple(target for target in made if target is not None)
        return GroundTruthFrame(self._name, path.name, index, path, width, height, objects)
