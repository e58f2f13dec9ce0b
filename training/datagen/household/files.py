"""A root of sequences on disk: ACVR's files, what is finished, and what is not.

ROOT/household.json              the settings that everything was made with
ROOT/captions.json               COCO captions of all finished sequences
ROOT/000000/000012.jpg           a frame
ROOT/000000/000012_mask.png      its mask
ROOT/000000/labels.json          ACVR's labels, written when all frames are there
ROOT/000000/visible.json         what every frame shows, unlabelled things included, from which captions are made
ROOT/000000/.frames/000012.json  the same for one frame while the sequence is unfinished; written after the pictures
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import write_bytes_atomically
from training.datagen.compact_json import json_bytes
from training.datagen.household.errors import HouseholdError
from training.datagen.household.ground_truth import Visible, find_visible, labelled, labels, mask
from training.datagen.household.sequences import Sequence, Settings

JPEG_QUALITY = 92

VisibleFrames = dict[int, dict[int, Visible]]


class Root:
    """The folder that sequences are written to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, settings: Settings) -> None:
        """Make the folder, or make sure that what is in it was made with the same settings.

        Raises:
            HouseholdError: it holds something else, or cannot be written.
        """
        path = self.folder / "household.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                if any(self.folder.iterdir()):
                    raise HouseholdError(f"{self.folder} is not empty and has no household.json: give another folder")
                _write(path, json_bytes(settings.document()))
                return
            made_with = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise HouseholdError(f"{path}: {error}") from None
        wanted = settings.document()
        if not isinstance(made_with, dict) or made_with != wanted:
            given = made_with if isinstance(made_with, dict) else {}
            other = [f"{key} {given.get(key)}, not {value}" for key, value in wanted.items() if given.get(key) != value]
            raise HouseholdError(
                f"{self.folder} was made with {'; '.join(other)}: give the same settings or another folder"
            )

    def sequence(self, number: int) -> Path:
        return self.folder / f"{number:06d}"

    def is_finished(self, number: int) -> bool:
        return (self.sequence(number) / "labels.json").exists()

    def missing(self, number: int, frames: int) -> list[int]:
        """Frames of a sequence that are still to be rendered."""
        if self.is_finished(number):
            return []
        records = self.sequence(number) / ".frames"
        return [frame for frame in range(frames) if not (records / f"{frame:06d}.json").exists()]

    def write_frame(
        self, sequence: Sequence, frame: int, image_bgr: NDArray[np.uint8], index: NDArray[np.uint16]
    ) -> None:
        """Write a frame's picture and mask, and then the record that makes it count as done."""
        folder = self.sequence(sequence.number)
        records = folder / ".frames"
        records.mkdir(parents=True, exist_ok=True)
        visible = find_visible(index)
        _write(folder / _mask_name(frame), _encoded(".png", mask(index, visible, labelled(sequence.scene.items))))
        _write(folder / _image_name(frame), _encoded(".jpg", image_bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]))
        _write(records / f"{frame:06d}.json", json_bytes(_packed(visible)))

    def finish(self, sequence: Sequence, frames: int) -> None:
        """Put the records of all frames together."""
        folder = self.sequence(sequence.number)
        records = folder / ".frames"
        visible = {frame: _unpacked(_read(records / f"{frame:06d}.json")) for frame in range(frames)}
        _write(folder / "visible.json", json_bytes({f"{frame:06d}": _packed(seen) for frame, seen in visible.items()}))
        document = labels(visible, sequence.scene.items, {frame: _mask_name(frame) for frame in range(frames)})
        _write(folder / "labels.json", json_bytes(document))
        shutil.rmtree(records)

    def visible(self, number: int) -> VisibleFrames:
        """What each frame of a finished sequence shows."""
        document = _read(self.sequence(number) / "visible.json")
        return {int(frame): _unpacked(seen) for frame, seen in document.items()}

    def write_captions(self, settings: Settings, captions: Mapping[tuple[int, int], list[str]]) -> None:
        """Write ``captions.json`` in COCO's format, by (sequence, frame)."""
        images: list[dict[str, object]] = []
        annotations: list[dict[str, object]] = []
        for (number, frame), sentences in sorted(captions.items()):
            image = image_id(number, frame)
            name = f"{number:06d}/{_image_name(frame)}"
            images.append({"id": image, "file_name": name, "width": settings.width, "height": settings.height})
            for sentence in sentences:
                annotations.append({"id": len(annotations), "image_id": image, "caption": sentence})
        _write(self.folder / "captions.json", json_bytes({"images": images, "annotations": annotations}))


def image_id(sequence: int, frame: int) -> int:
    """What captions.json calls a frame."""
    return sequence * 1_000_000 + frame


def _image_name(frame: int) -> str:
    return f"{frame:06d}.jpg"


def _mask_name(frame: int) -> str:
    return f"{frame:06d}_mask.png"


def _packed(visible: Mapping[int, Visible]) -> dict[str, tuple[int, ...]]:
    return {str(number): astuple(seen) for number, seen in sorted(visible.items())}


def _unpacked(record: Mapping[str, list[int]]) -> dict[int, Visible]:
    return {int(number): Visible(*values) for number, values in record.items()}


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HouseholdError(f"{path} cannot be read ({error}): delete its sequence's folder and start again") from None


def _encoded(suffix: str, image: NDArray[np.uint8] | NDArray[np.uint16], options: list[int] | None = None) -> bytes:
    return cv2.imencode(suffix, image, options or [])[1].tobytes()


def _write(path: Path, data: bytes) -> None:
    """Whole, or not at all."""
    try:
        write_bytes_atomically(path, data)
    except OSError as error:
        raise HouseholdError(f"{path} cannot be written: {error.strerror}") from None
