"""Contents of an image by two networks: YOLOX finds objects (COCO's classes), DeepLab areas (ADE20K's classes)."""

import colorsys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning import Detector
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines import create_engine
from smart_caption_ros.engines.errors import EngineError
from smart_caption_ros.files import sha256_of
from training.errors import DataError

# Hue in degrees below which a saturated colour has the name; empty between two names.
_HUES = ((12, "red"), (46, ""), (66, "yellow"), (80, ""), (165, "green"), (190, ""), (255, "blue"))


def colour_name(pixels_bgr: NDArray[np.uint8]) -> str:
    """Name the median colour of pixels (N, 3) uint8; empty where it lies between names or N is 0."""
    if not len(pixels_bgr):
        return ""
    blue, green, red = np.median(pixels_bgr, axis=0) / 255
    hue, saturation, value = colorsys.rgb_to_hsv(float(red), float(green), float(blue))
    degrees = hue * 360
    if value < 0.22:
        return "black"
    if saturation < 0.16:
        return "white" if value > 0.62 else "gray" if 0.3 < value < 0.55 else ""
    if 12 <= degrees < 45 and saturation > 0.3 and value < 0.72:
        return "brown"
    if saturation < 0.45 or value < 0.25:
        return ""
    for limit, name in _HUES:
        if degrees < limit:
            return name
    return "red" if degrees > 348 else ""


DETECTOR, SEGMENTER, CLASSES = "yolox_nano.onnx", "deeplabv3_mnv2_ade20k_uint8.onnx", "ade20k_classes.txt"
MINIMUM_SCORE = 0.15
"""Detections below this score are dropped; users of the contents apply higher thresholds."""
MINIMUM_SHARE = 0.002
"""Areas that cover less of the image are dropped."""
_INPUT_SIDE_PX = 512
_VERSION = 1
"""Version of the contents; increase it when they change."""


@dataclass(frozen=True)
class FoundObject:
    """An object found by the detector."""

    name: str
    """Class name."""
    score: float
    box: Box
    """xyxy, fractions of the image's width and height."""
    colour: str
    """Name of its median colour; empty where it has no plain name."""


@dataclass(frozen=True)
class SegmentedArea:
    """All pixels of one class."""

    name: str
    """Class name."""
    share: float
    """Fraction of the image's pixels."""
    colour: str
    """Name of its median colour; empty where it has no plain name."""


@dataclass(frozen=True)
class ImageContent:
    """Everything that the two networks find in an image."""

    objects: tuple[FoundObject, ...]
    areas: tuple[SegmentedArea, ...]
    """Largest first."""


class ContentTeacher:
    """The detector and the segmenter."""

    def __init__(self, models: Path) -> None:
        """Load both networks.

        Args:
            models: folder with both networks and ADE20K's class names.

        Raises:
            DataError: a file is malformed.
            OSError: a file is missing.
        """
        self.fingerprint = {
            "answers": _VERSION,
            "detector": sha256_of(models / DETECTOR),
            "segmenter": sha256_of(models / SEGMENTER),
        }
        """Version and checksums: equal fingerprints give equal contents."""
        # Class 0 of the segmenter is the background, which is not in ADE20K's list.
        self._area_names = ["", *read_area_names(models / CLASSES)]
        try:
            engine = create_engine("onnxruntime-cpu", 1)
            self._detector = Detector(models / DETECTOR, engine, minimum_score=MINIMUM_SCORE)
            self._segmenter = engine.load(models / SEGMENTER)
        except (DetectorError, EngineError) as error:
            raise DataError(str(error)) from None

    def find(self, image_bgr: NDArray[np.uint8]) -> ImageContent:
        """Find objects and areas.

        Args:
            image_bgr: (H, W, 3) uint8.
        """
        return ImageContent(self._objects(image_bgr), self._areas(image_bgr))

    def _objects(self, image_bgr: NDArray[np.uint8]) -> tuple[FoundObject, ...]:
        height, width = image_bgr.shape[:2]
        size = np.array([width, height] * 2)
        objects = []
        for found in self._detector.detect(image_bgr):
            left, top, right, bottom = found.box_xyxy
            # The middle of a box shows the object more often than its corners do.
            middle = image_bgr[
                int(0.75 * top + 0.25 * bottom) : int(0.25 * top + 0.75 * bottom) + 1,
                int(0.75 * left + 0.25 * right) : int(0.25 * left + 0.75 * right) + 1,
            ]
            box = np.round(np.array(found.box_xyxy) / size, 4).tolist()
            colour = colour_name(middle.reshape(-1, 3))
            objects.append(FoundObject(found.class_name, round(found.score, 3), tuple(box), colour))
        return tuple(objects)

    def _areas(self, image_bgr: NDArray[np.uint8]) -> tuple[SegmentedArea, ...]:
        resized = cv2.resize(image_bgr, (_INPUT_SIDE_PX, _INPUT_SIDE_PX), interpolation=cv2.INTER_LINEAR)
        rgb = np.ascontiguousarray(resized[..., ::-1])[None]
        outputs = self._segmenter.run({self._segmenter.inputs[0].name: rgb})
        classes = outputs[self._segmenter.outputs[0].name].reshape(_INPUT_SIDE_PX, _INPUT_SIDE_PX)
        areas = []
        for number, count in zip(*np.unique(classes, return_counts=True), strict=True):
            share = float(count) / classes.size
            if 0 < number < len(self._area_names) and share >= MINIMUM_SHARE:
                colour = colour_name(resized[classes == number])
                areas.append(SegmentedArea(self._area_names[number], round(share, 4), colour))
        return tuple(sorted(areas, key=lambda area: (-area.share, area.name)))


def read_area_names(path: Path) -> list[str]:
    """Read ADE20K's 150 class names in order, the first word for each.

    Raises:
        DataError: the file is missing or is not the table of classes.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [line.split("\t")[4].split(",")[0].strip() for line in lines[1:]]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (IndexError, UnicodeDecodeError):
        raise DataError(f"{path}: expected a table with tabs whose fifth column is the class") from None


def content_from_json(record: Any) -> ImageContent:
    """Rebuild an :class:`ImageContent` from the result of ``dataclasses.asdict``, read from JSON.

    Raises:
        KeyError, TypeError: the record is malformed.
    """
    objects = tuple(FoundObject(**{**entry, "box": tuple(entry["box"])}) for entry in record["objects"])
    return ImageContent(objects, tuple(SegmentedArea(**entry) for entry in record["areas"]))
