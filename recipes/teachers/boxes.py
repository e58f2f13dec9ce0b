"""Boxes for detector training: found in photographs by a detector, or known to the renderer of household frames."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulation.household.dataset_folder import image_id
from smart_caption_ros.captioning import Detector
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.files import sha256_of
from smart_caption_ros.sources.acvr import ACVR_CLASSES, AcvrSequences
from smart_caption_ros.sources.source import SourceError
from training.data.caption_dataset import CaptionDataset
from training.data.coco_dataset import CocoDataset
from training.data.photographs import read_photograph
from training.errors import DataError

GROUND_TRUTH = "ground truth"
PROVENANCE = {
    "yolox_nano.onnx": {"name": "YOLOX-nano (COCO), on the photographs", "terms": "weights Apache-2.0"},
    GROUND_TRUTH: {"name": "the renderer, on household frames", "terms": "our own"},
}
"""``made_by`` of a label file to an entry for the manifest of a bundle whose detector was trained on it."""


class LabelledImage(NamedTuple):
    """The objects of an image."""

    image: str
    """Image id."""
    boxes: list[Box]
    """xyxy, fractions of the image's width and height."""
    classes: list[str]
    """Class name of each box."""
    scores: list[float]
    """Score of each box in (0, 1]."""


class DetectorLabels:
    """Boxes that a detector finds in the photographs of a data set."""

    def __init__(self, detector: Detector, dataset: CaptionDataset, images: Sequence[str]) -> None:
        self._detector, self._dataset = detector, dataset
        self.images = images

    @property
    def header(self) -> dict[str, Any]:
        """First line of the label file: how the labels were made, and their classes."""
        return {
            "made_by": self._detector.path.name,
            "sha256": sha256_of(self._detector.path),
            "minimum_score": self._detector.minimum_score,
            "classes": list(self._detector.class_names),
        }

    def label(self, images: Sequence[str]) -> Iterator[LabelledImage]:
        """Label images one after the other.

        Raises:
            DataError: a photograph cannot be read.
        """
        for image in images:
            image_bgr = read_uncropped(self._dataset, image)
            height, width = image_bgr.shape[:2]
            found = self._detector.detect(image_bgr)
            yield LabelledImage(
                image,
                [_fractions(each.box_xyxy, width, height) for each in found],
                [each.class_name for each in found],
                [each.score for each in found],
            )


class RendererLabels:
    """Ground-truth boxes of household frames, as ``python -m simulation.household`` writes them."""

    def __init__(self, root: Path) -> None:
        """Read the ground truth.

        Args:
            root: folder of sequences in ACVR's layout.

        Raises:
            DataError: there is no sequence, or the name of a sequence or frame is not a number.
        """
        try:
            frames = AcvrSequences(root).frames()
            self._frames = {image_id(int(frame.sequence), int(frame.frame)): frame for frame in frames}
        except SourceError as error:
            raise DataError(str(error)) from None
        except ValueError:
            raise DataError(f"{root}: sequences and frames must be numbers, as in captions.json") from None
        self.images = [str(image) for image in self._frames]
        self.header: dict[str, Any] = {"made_by": GROUND_TRUTH, "classes": list(ACVR_CLASSES[1:])}

    def label(self, images: Sequence[str]) -> Iterator[LabelledImage]:
        """Label images one after the other: every object with a visible pixel."""
        for image in images:
            frame = self._frames[int(image)]
            yield LabelledImage(
                image,
                [_fractions(each.box_xyxy, frame.width, frame.height) for each in frame.objects],
                [each.class_name for each in frame.objects],
                [1.0] * len(frame.objects),
            )


def read_uncropped(dataset: CaptionDataset, image: str) -> NDArray[np.uint8]:
    """Read a photograph, (H, W, 3) uint8 BGR, with its original aspect ratio where the data set has it.

    Raises:
        DataError: it is missing or not an image.
    """
    if isinstance(dataset, CocoDataset):
        return read_photograph(dataset.paths[image], image)
    return dataset.read_images([image])[0]


def _fractions(box: Box, width: int, height: int) -> Box:
    left, top, right, bottom = box
    return left / width, top / height, right / width, bottom / height
