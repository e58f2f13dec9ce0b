"""Sequences of the ACRV Robotic Vision Challenge (ACVR): ``<root>/<sequence>/labels.json``, masks and RGB frames.

docs/coverage.md describes the layout. A labels.json that is not JSON is refused when the root is opened, because
figures without that sequence would look complete; all other faulty data are left out and counted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from smart_caption_ros.detection.boxes import Box, four_numbers
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.sources.ground_truth import (
    DatasetIssue,
    DatasetIssues,
    GroundTruth,
    GroundTruthFrame,
    GroundTruthObject,
)
from smart_caption_ros.sources.image_folder import natural_order
from smart_caption_ros.sources.json_files import read_json, whole_number
from smart_caption_ros.sources.source import SourceError

LABELS = "labels.json"
ACVR_CLASSES = (
    "none", "bottle", "cup", "knife", "bowl", "wine glass", "fork", "spoon", "banana", "apple", "orange", "cake",
    "potted plant", "mouse", "keyboard", "laptop", "cell phone", "book", "clock", "chair", "dining table", "couch",
    "bed", "toilet", "television", "microwave", "toaster", "refrigerator", "oven", "sink", "person",
)  # fmt: skip
"""In the order of the challenge; the first one stands for no object."""

_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
_NONE = ACVR_CLASSES[0]
# Synonyms that the challenge accepts, in addition to the spellings that `normalise` knows.
_SYNONYMS = {
    "computer monitor": "television",
    "stool": "chair",
    "sofa": "couch",
    "background": _NONE,
    "bg": _NONE,
}
_LARGEST_MASK_ID = 0xFFFF
_NUMBER = re.compile(r"[0-9]{1,18}")


def acvr_class(name: str) -> str | None:
    """Map a name to the challenge's class, ``none`` for background; None if it is unknown."""
    plain = normalise(name)
    meant = _SYNONYMS.get(plain, plain)
    return meant if meant in ACVR_CLASSES else None


@dataclass(frozen=True)
class _Frame:
    key: str
    """As in labels.json; six digits for a frame without a label."""
    is_labelled: bool
    record: Any
    """Its value in labels.json."""
    image_name: str | None


class _Object(dict[str, Any]):
    """A JSON object that also keeps repeated members, in :attr:`pairs`."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class AcvrSequences(GroundTruth):
    """The frames of a root, or of one sequence if the given folder has a labels.json itself.

    A sequence has a frame for each number of a label or an image. Memory holds the labels of one sequence.

    Args:
        objects: whether to read labels. If not, sequences without labels are read as well, frames have no objects,
            and every frame with an image is yielded.
    """

    def __init__(self, root: Path, *, objects: bool = True) -> None:
        super().__init__(str(root))
        self._wants_objects = objects
        self._folders = self._find_sequences(root)
        # Reads every labels.json now, to find broken ones before hours of captioning.
        self.lengths = {
            name: len(self._read_sequence(folder, DatasetIssues())) for name, folder in self._folders.items()
        }

    def _find_sequences(self, root: Path) -> dict[str, Path]:
        if not root.is_dir():
            raise SourceError(f"{root}: no such folder; give the one that holds <sequence>/{LABELS}")
        if (root / LABELS).is_file():
            return {root.resolve().name: root}
        try:
            entries = sorted(root.iterdir(), key=lambda entry: (natural_order(entry), entry.name))
        except OSError as error:
            raise SourceError(f"{root} cannot be read: {error.strerror}") from None
        folders = [entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        found = {}
        for folder in folders:
            if (folder / LABELS).is_file() or (not self._wants_objects and _image_names(folder)):
                found[folder.name] = folder
            else:
                self._found_at_opening.add(DatasetIssue.FOLDER_WITHOUT_LABELS, folder.name)
        if not found:
            raise SourceError(
                f"{root} holds no sequence: expected <sequence>/{LABELS} in it"
                + (f" ({len(folders)} folders there have none)" if folders else "")
            )
        return found

    def _read_sequence(self, folder: Path, issues: DatasetIssues) -> list[_Frame]:
        """Read labels.json and find the images; return the frames in the order of their numbers."""
        labels = folder / LABELS
        try:
            content = read_json(labels, object_pairs_hook=_Object) if labels.is_file() else _Object([])
            if not isinstance(content, _Object):
                raise SourceError(f"{labels} is not a JSON object with a record a frame")
        except SourceError as error:
            raise SourceError(f"{error}; repair it or take {folder} away") from None
        labelled: dict[int, tuple[str, Any]] = {}
        mask_names = set()
        for key, record in content.pairs:
            mask_name = _mask_name(record)
            if mask_name is not None:
                mask_names.add(mask_name)
            if key.startswith("_"):
                continue
            if not _NUMBER.fullmatch(key):
                issues.add(DatasetIssue.MALFORMED_FRAME, f"{folder.name}/{key}")
            elif int(key) in labelled:
                issues.add(DatasetIssue.REPEATED_FRAME, f"{folder.name}/{key}")
            else:
                labelled[int(key)] = (key, record)
        images = _number_images(folder, mask_names, issues)
        frames = []
        for number in sorted(labelled.keys() | images.keys()):
            key, record = labelled.get(number, (f"{number:06d}", None))
            frames.append(_Frame(key, number in labelled, record, images.get(number)))
        return frames

    def sequence_frames(self, sequence: str, every: int, first: int = 0) -> Iterator[GroundTruthFrame]:
        """Yield every ``every``-th frame of one sequence, from index ``first`` on."""
        folder = self._folders[sequence]
        for index, frame in enumerate(self._read_sequence(folder, self.issues)):
            if index < first or (index - first) % every:
                continue
            name = f"{sequence}/{frame.key}"
            if not frame.is_labelled and self._wants_objects:
                self.issues.add(DatasetIssue.IMAGE_WITHOUT_FRAME, name)
                continue
            if frame.image_name is None:
                self.issues.add(DatasetIssue.FRAME_WITHOUT_IMAGE, name)
                continue
            image_path = folder / frame.image_name
            if (size := self._image_size(image_path, name)) is None:
                continue
            objects: tuple[GroundTruthObject, ...] | None = ()
            if self._wants_objects:
                objects = self._objects(name, frame.record, folder, size)
            if objects is not None:
                yield GroundTruthFrame(sequence, frame.key, index, image_path, *size, objects)

    def _objects(
        self, name: str, record: Any, folder: Path, size: tuple[int, int]
    ) -> tuple[GroundTruthObject, ...] | None:
        """Read the objects of a frame's record; None if the whole frame is to be left out."""
        if not isinstance(record, dict):
            self.issues.add(DatasetIssue.MALFORMED_FRAME, name)
            return None
        if not isinstance(record.get("_metadata"), dict):
            if any(not key.startswith("_") for key in record):
                self.issues.add(DatasetIssue.OBJECTS_WITHOUT_METADATA, name)
            return ()
        mask_name = _mask_name(record)
        mask = _Mask(folder / mask_name if mask_name else None)
        mask_address = f"{folder.name}/{mask_name}"
        if mask_name and mask.is_missing:
            self.issues.add(DatasetIssue.MISSING_MASK, mask_address)
        elif mask.size is not None and mask.size != size:
            self.issues.add(DatasetIssue.MASK_OF_ANOTHER_SIZE, name)
            return None
        objects = []
        for key, instance in record.items():
            if key.startswith("_"):
                continue
            made = self._object_of(key, instance, mask, size, f"{name}, object {key}")
            if made is not None:
                objects.append(made)
        if mask.is_unusable:
            self.issues.add(DatasetIssue.UNUSABLE_MASK, mask_address)
        return tuple(objects)

    def _object_of(
        self, key: str, instance: Any, mask: "_Mask", size: tuple[int, int], where: str
    ) -> GroundTruthObject | None:
        if not (_NUMBER.fullmatch(key) and isinstance(instance, dict)):
            self.issues.add(DatasetIssue.MALFORMED_OBJECT, where)
            return None
        given = instance.get("class")
        class_name = acvr_class(given) if isinstance(given, str) else None
        if class_name is None:
            self.issues.add(DatasetIssue.UNKNOWN_CLASS, f"{where}, class {given!r}")
            return None
        if class_name == _NONE:
            self.issues.add(DatasetIssue.BACKGROUND, where)
            return None
        inclusive = four_numbers(instance.get("bounding_box"))
        if inclusive is not None:
            left, top, right, bottom = inclusive
            corners = (left, top, right + 1, bottom + 1)
        else:
            if instance.get("bounding_box") is not None:
                self.issues.add(DatasetIssue.MALFORMED_OBJECT, where)
            found = mask.box_of(instance.get("mask_id"))
            if found is None:
                self.issues.add(DatasetIssue.OBJECT_WITHOUT_PLACE, where)
                return None
            corners = found
        return self._object(class_name, int(key), corners, size, where)


class _Mask:
    """A greyscale image whose pixels hold the number of their object; decoded only if a box is needed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.is_missing = path is None or not path.is_file()
        self.is_unusable = False
        """Set when the size or a box is requested."""

    @cached_property
    def size(self) -> tuple[int, int] | None:
        if self._path is None or self.is_missing:
            return None
        try:
            with Image.open(self._path) as image:
                # Mode P has a palette for display; the pixel values are the object numbers.
                self.is_unusable = image.mode not in ("1", "L", "P", "I", "I;16", "I;16B")
                return None if self.is_unusable else image.size
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            self.is_unusable = True
            return None

    @cached_property
    def _boxes(self) -> list[tuple[slice, slice] | None]:
        from scipy.ndimage import find_objects

        if self._path is None or self.size is None:
            return []
        try:
            with Image.open(self._path) as image:
                pixels = np.asarray(image).astype(np.int64, copy=False)
        except (OSError, SyntaxError, ValueError):
            self.is_unusable = True
            return []
        self.is_unusable = bool(pixels.min(initial=0) < 0 or pixels.max(initial=0) > _LARGEST_MASK_ID)
        return [] if self.is_unusable else list(find_objects(pixels))

    def box_of(self, mask_id: Any) -> Box | None:
        """Compute the box around the pixels of that value; None if there are none."""
        number = whole_number(mask_id)
        if number is None or not 1 <= number <= len(self._boxes):
            return None
        found = self._boxes[number - 1]
        if found is None:
            return None
        rows, columns = found
        return (float(columns.start), float(rows.start), float(columns.stop), float(rows.stop))


def _mask_name(record: Any) -> str | None:
    """Return the path of a frame's mask relative to its folder; None if the record names none."""
    metadata = record.get("_metadata") if isinstance(record, dict) else None
    name = metadata.get("mask_name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name and "\0" not in name else None


def _image_names(folder: Path) -> list[str]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise SourceError(f"{folder} cannot be read: {error.strerror}") from None
    return [name for name in names if name.lower().endswith(_IMAGE_SUFFIXES) and not name.startswith(".")]


def _number_images(folder: Path, mask_names: set[str], issues: DatasetIssues) -> dict[int, str]:
    """Map the last number in each image's name to the name."""
    images: dict[int, str] = {}
    for name in _image_names(folder):
        if name in mask_names:
            continue
        digits = re.findall(r"[0-9]+", Path(name).stem)
        if not digits:
            issues.add(DatasetIssue.IMAGE_WITHOUT_NUMBER, f"{folder.name}/{name}")
            continue
        number = int(digits[-1])
        if number in images:
            issues.add(DatasetIssue.REPEATED_IMAGE, f"{folder.name}/{name}")
            # One of the two may be a mask that no record names.
            if not _is_greyscale(folder / images[number]) or _is_greyscale(folder / name):
                continue
        images[number] = name
    return images


def _is_greyscale(path: Path) -> bool:
    return _Mask(path).size is not None
