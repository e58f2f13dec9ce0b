"""The folder that sequences are written to, in ACVR's layout.

ROOT/household.json              settings that everything was made with
ROOT/captions.json               captions of all finished sequences in COCO's format
ROOT/000000/000012.jpg           frame
ROOT/000000/000012_mask.png      instance mask of the frame
ROOT/000000/labels.json          ACVR's labels, written when all frames are there
ROOT/000000/visible.json         extents of all visible objects, labelled or not, from which captions are made
ROOT/000000/.frames/000012.json  the same for one frame of an unfinished sequence, written after image and mask
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

from simulation.household.errors import HouseholdError
from simulation.household.ground_truth import VisibleExtent, acvr_labels, label_mask, labelled_ids, visible_extents
from simulation.household.sequences import RenderSettings, SequencePlan
from smart_caption_ros.files import write_bytes_atomically

_JPEG_QUALITY = 92
_SETTINGS = "household.json"
_LABELS = "labels.json"
_VISIBLE = "visible.json"
_RECORDS = ".frames"


class DatasetFolder:
    """A folder of sequences. A frame counts as done when its record is written, a sequence when its labels are.

    Every method that writes raises HouseholdError if a file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, settings: RenderSettings) -> None:
        """Create the folder, or check that its content was made with the same settings.

        Raises:
            HouseholdError: the folder has other content or cannot be written.
        """
        path = self.folder / _SETTINGS
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                if any(self.folder.iterdir()):
                    raise HouseholdError(f"{self.folder} is not empty and has no {_SETTINGS}: give another folder")
                _write_json(path, settings.document())
                return
        except OSError as error:
            raise HouseholdError(f"{path}: {error}") from None
        made_with = _read(path, "give another folder")
        wanted = settings.document()
        if made_with != wanted:
            given = made_with if isinstance(made_with, dict) else {}
            other = [f"{key} {given.get(key)}, not {value}" for key, value in wanted.items() if given.get(key) != value]
            raise HouseholdError(
                f"{self.folder} was made with {'; '.join(other)}: give the same settings or another folder"
            )

    def sequence(self, number: int) -> Path:
        """Return the folder of a sequence."""
        return self.folder / f"{number:06d}"

    def is_finished(self, number: int) -> bool:
        """Return whether the labels of a sequence are written."""
        return (self.sequence(number) / _LABELS).exists()

    def missing_frames(self, number: int, frames: int) -> list[int]:
        """Return the frames of a sequence of ``frames`` that are still to be rendered."""
        if self.is_finished(number):
            return []
        return [frame for frame in range(frames) if not self._record(number, frame).exists()]

    def write_frame(
        self, sequence: SequencePlan, frame: int, image_bgr: NDArray[np.uint8], instances: NDArray[np.uint16]
    ) -> None:
        """Write a frame's image and mask, then the record by which it counts as done.

        Args:
            sequence: plan of the sequence.
            frame: number of the frame.
            image_bgr: uint8, (H, W, 3).
            instances: instance number of the object at each pixel, 0 for none, (H, W).
        """
        folder, record = self.sequence(sequence.number), self._record(sequence.number, frame)
        record.parent.mkdir(parents=True, exist_ok=True)
        extents = visible_extents(instances)
        mask = label_mask(instances, extents, labelled_ids(sequence.scene.objects))
        _write(folder / _mask_name(frame), _encoded(".png", mask))
        _write(folder / _image_name(frame), _encoded(".jpg", image_bgr, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]))
        _write_json(record, _to_json(extents))

    def finish_sequence(self, sequence: SequencePlan, frames: int) -> None:
        """Combine the records of a sequence's frames into its labels.

        Raises:
            HouseholdError: a record cannot be read.
        """
        folder = self.sequence(sequence.number)
        extents = {frame: _from_json(_read(self._record(sequence.number, frame))) for frame in range(frames)}
        document = {f"{frame:06d}": _to_json(visible) for frame, visible in extents.items()}
        _write_json(folder / _VISIBLE, document)
        masks = {frame: _mask_name(frame) for frame in range(frames)}
        _write_json(folder / _LABELS, acvr_labels(extents, sequence.scene.objects, masks))
        shutil.rmtree(folder / _RECORDS)

    def visible_extents(self, number: int) -> dict[int, dict[int, VisibleExtent]]:
        """Return the visible objects of a finished sequence, by frame and instance number.

        Raises:
            HouseholdError: the file cannot be read.
        """
        document = _read(self.sequence(number) / _VISIBLE)
        return {int(frame): _from_json(extents) for frame, extents in document.items()}

    def write_captions(self, settings: RenderSettings, captions: Mapping[tuple[int, int], list[str]]) -> None:
        """Write ``captions.json`` in COCO's format; ``captions`` are by sequence and frame."""
        images: list[dict[str, object]] = []
        annotations: list[dict[str, object]] = []
        for (number, frame), sentences in sorted(captions.items()):
            image = image_id(number, frame)
            name = f"{number:06d}/{_image_name(frame)}"
            images.append({"id": image, "file_name": name, "width": settings.width, "height": settings.height})
            for sentence in sentences:
                annotations.append({"id": len(annotations), "image_id": image, "caption": sentence})
        _write_json(self.folder / "captions.json", {"images": images, "annotations": annotations})

    def _record(self, number: int, frame: int) -> Path:
        return self.sequence(number) / _RECORDS / f"{frame:06d}.json"


def image_id(sequence: int, frame: int) -> int:
    """Return the id of a frame in ``captions.json``."""
    return sequence * 1_000_000 + frame


def _image_name(frame: int) -> str:
    return f"{frame:06d}.jpg"


def _mask_name(frame: int) -> str:
    return f"{frame:06d}_mask.png"


def _to_json(extents: Mapping[int, VisibleExtent]) -> dict[str, tuple[int, ...]]:
    return {str(number): astuple(extent) for number, extent in sorted(extents.items())}


def _from_json(record: Mapping[str, list[int]]) -> dict[int, VisibleExtent]:
    return {int(number): VisibleExtent(*values) for number, values in record.items()}


def _read(path: Path, remedy: str = "delete the sequence's folder and run the command again") -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise HouseholdError(f"{path} cannot be read ({error.strerror}): {remedy}") from None
    except ValueError as error:
        raise HouseholdError(f"{path} is not JSON ({error}): {remedy}") from None


def _encoded(suffix: str, image: NDArray[np.uint8] | NDArray[np.uint16], options: list[int] | None = None) -> bytes:
    return cv2.imencode(suffix, image, options or [])[1].tobytes()


def _write_json(path: Path, document: object) -> None:
    _write(path, (json.dumps(document, separators=(",", ":")) + "\n").encode())


def _write(path: Path, data: bytes) -> None:
    try:
        write_bytes_atomically(path, data)
    except OSError as error:
        raise HouseholdError(f"{path} cannot be written: {error.strerror}") from None
