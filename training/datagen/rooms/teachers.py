"""What two networks see in a photograph: YOLOX finds objects of COCO, DeepLab names every pixel with ADE20K's classes.

Their answers are kept, a file a photograph, so that a run that was stopped goes on where it was.
"""

import colorsys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.captioning import Detector
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.engines import create_engine
from smart_caption_ros.engines.errors import EngineError
from training.datagen.compact_json import json_bytes
from training.datagen.rooms.errors import RoomsError
from training.datagen.rooms.files import read_json, sha256, write
from training.datagen.rooms.photographs import Photograph, RoomsData, decoded

DETECTOR, SEGMENTER, CLASSES = "yolox_nano.onnx", "deeplabv3_mnv2_ade20k_uint8.onnx", "ade20k_classes.txt"
MINIMUM_SCORE = 0.15
"""What is kept of the detector; who asks may be stricter."""
MINIMUM_AREA = 0.002
_SIDE = 512
_ANSWERS = 1
"""Version of what is kept; another one is made again."""


@dataclass(frozen=True)
class SeenObject:
    """An object of the detector."""

    name: str
    score: float
    box: tuple[float, float, float, float]
    """Left, top, right, bottom as parts of the photograph's width and height."""
    colour: str


@dataclass(frozen=True)
class SeenArea:
    """All pixels of one class."""

    name: str
    share: float
    """Of the photograph."""
    colour: str


@dataclass(frozen=True)
class Seen:
    """What the teachers say of one photograph."""

    objects: tuple[SeenObject, ...]
    areas: tuple[SeenArea, ...]


def class_names(path: Path) -> list[str]:
    """The 150 classes in order: the first word that ADE20K has for each.

    Raises:
        RoomsError: the file is missing or has no such table.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [line.split("\t")[4].split(",")[0].strip() for line in lines[1:]]
    except OSError as error:
        raise RoomsError(f"{path} cannot be read: {error.strerror}") from None
    except (IndexError, UnicodeDecodeError):
        raise RoomsError(f"{path}: expected a table with tabs whose fifth column is the class") from None


def colour_name(pixels_bgr: NDArray[np.uint8]) -> str:
    """The plain name of the median colour of pixels (N, 3) uint8; empty where it lies between names."""
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
    for limit, name in ((12, "red"), (46, ""), (66, "yellow"), (80, ""), (165, "green"), (190, ""), (255, "blue")):
        if degrees < limit:
            return name
    return "red" if degrees > 348 else ""


class Teachers:
    """Both networks, and the folder that keeps what they said."""

    def __init__(self, models: Path, kept: Path) -> None:
        """
        Args:
            models: folder of both networks and of ADE20K's classes.
            kept: folder of their answers.

        Raises:
            RoomsError: a file is missing or is not what it should be.
        """
        self._kept = kept
        self._made_by = {
            "answers": _ANSWERS,
            "detector": sha256(models / DETECTOR),
            "segmenter": sha256(models / SEGMENTER),
        }
        # The first answer of the segmenter is the background, which is none of ADE20K's classes.
        self._areas = ["", *class_names(models / CLASSES)]
        try:
            engine = create_engine("onnxruntime-cpu", 1)
            self._detector = Detector(models / DETECTOR, engine, minimum_score=MINIMUM_SCORE)
            self._segmenter = engine.load(models / SEGMENTER)
        except (DetectorError, EngineError) as error:
            raise RoomsError(str(error)) from None

    def look(self, data: RoomsData, photographs: Sequence[Photograph]) -> dict[str, Seen]:
        """What they see, by the photographs' ids; answers that are kept are not asked for again.

        Raises:
            RoomsError: a photograph cannot be read, or a kept answer is damaged.
        """
        if read_or_none(self._kept / "teachers.json") != self._made_by:
            for old in self._kept.glob("*/*.json"):
                old.unlink()
            write(self._kept / "teachers.json", json_bytes(self._made_by))
        missing = [photograph for photograph in photographs if not self._path(photograph).is_file()]
        with tqdm(data.encoded(missing), "teachers", len(missing), unit="photograph", mininterval=1) as bar:
            for photograph, encoded in bar:
                seen = self.see(decoded(photograph, encoded))
                write(self._path(photograph), json_bytes(asdict(seen)))
        return {photograph.id: _unpacked(self._path(photograph)) for photograph in photographs}

    def see(self, image_bgr: NDArray[np.uint8]) -> Seen:
        """
        Args:
            image_bgr: (H, W, 3) uint8.
        """
        height, width = image_bgr.shape[:2]
        size = np.array([width, height] * 2)
        objects = []
        for found in self._detector.detect(image_bgr):
            left, top, right, bottom = found.box_xyxy
            # The middle of a box is the object more often than its corners are.
            middle = image_bgr[
                int(0.75 * top + 0.25 * bottom) : int(0.25 * top + 0.75 * bottom) + 1,
                int(0.75 * left + 0.25 * right) : int(0.25 * left + 0.75 * right) + 1,
            ]
            box = np.round(np.array(found.box_xyxy) / size, 4).tolist()
            objects.append(
                SeenObject(found.class_name, round(found.score, 3), tuple(box), colour_name(middle.reshape(-1, 3)))
            )
        squashed = cv2.resize(image_bgr, (_SIDE, _SIDE), interpolation=cv2.INTER_LINEAR)
        rgb = np.ascontiguousarray(squashed[..., ::-1])[None]
        answer = self._segmenter.run({self._segmenter.inputs[0].name: rgb})
        classes = answer[self._segmenter.outputs[0].name].reshape(_SIDE, _SIDE)
        areas = []
        for number, count in zip(*np.unique(classes, return_counts=True), strict=True):
            share = float(count) / classes.size
            if 0 < number < len(self._areas) and share >= MINIMUM_AREA:
                areas.append(SeenArea(self._areas[number], round(share, 4), colour_name(squashed[classes == number])))
        return Seen(tuple(objects), tuple(sorted(areas, key=lambda area: (-area.share, area.name))))

    def _path(self, photograph: Photograph) -> Path:
        return self._kept / photograph.origin / f"{Path(photograph.file).stem}.json"


def read_or_none(path: Path) -> Any:
    return read_json(path) if path.is_file() else None


def _unpacked(path: Path) -> Seen:
    record = read_json(path)
    try:
        objects = tuple(SeenObject(**{**each, "box": tuple(each["box"])}) for each in record["objects"])
        return Seen(objects, tuple(SeenArea(**each) for each in record["areas"]))
    except (KeyError, TypeError):
        raise RoomsError(f"{path} is damaged: delete it and start again") from None
