"""Boxes of images for the training of a detector: one file format for all sources of labels.

A file is UTF-8 text, a JSON object a line. The first line is the header ``{"detection_labels": 1, "made_by": ...,
"classes": [...]}`` with all classes that were labelled, so that an image without a box of one of them has no such
object. Each other line is an image: ``{"image": id, "boxes": [[x1, y1, x2, y2], ...], "classes": [...],
"scores": [...]}``, boxes in fractions of its width and height, classes by their names, scores from 0 to 1 (1 from a
person or a renderer, less from a detector).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import clip_boxes
from smart_caption_ros.detection.class_names import normalise
from training.errors import DataError

VERSION = 1


@dataclass(frozen=True)
class Boxes:
    """N boxes of one image."""

    xyxy: NDArray[np.float32]
    """(N, 4), fractions of the image's width and height, in [0, 1]."""
    class_ids: NDArray[np.int64]
    """(N,), indices into the class names that the labels were read for."""
    scores: NDArray[np.float32]
    """(N,), in (0, 1]."""

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, which: NDArray[np.bool_]) -> "Boxes":
        """Select the boxes where ``which`` (N,) is True."""
        return Boxes(self.xyxy[which], self.class_ids[which], self.scores[which])


@dataclass
class Labels:
    """The boxes of many images, for a detector of certain classes."""

    class_names: tuple[str, ...]
    boxes: dict[str, Boxes] = field(default_factory=dict)
    """By image id; an image that is not here has no labels."""
    _labelled_classes: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    made_by: list[str] = field(default_factory=list)
    """Sources of the labels, each once."""

    def labelled_classes(self, image: str) -> NDArray[np.bool_]:
        """Return (classes,) bool, the classes that the labels of an image cover."""
        return self._labelled_classes[image]

    def add(self, path: Path, prefix: str = "") -> None:
        """Read a file; boxes of classes that the detector does not have are ignored.

        Args:
            prefix: put before each image id.

        Raises:
            DataError: the file is missing or malformed, or an image has labels already.
        """
        header, records = read_records(path)
        if (teacher := str(header.get("made_by", "unknown"))) not in self.made_by:
            self.made_by.append(teacher)
        known = {name: index for index, name in enumerate(self.class_names)}
        labelled = np.isin(self.class_names, [normalise(name) for name in header["classes"]])
        for record in records:
            image = prefix + record["image"]
            if image in self.boxes:
                raise DataError(f"{path}, image {image}: it has labels already, from this file or another")
            try:
                self.boxes[image] = _boxes(record, known)
            except (AttributeError, TypeError, ValueError) as error:
                raise DataError(f"{path}, image {image}: {error}") from None
            self._labelled_classes[image] = labelled


def read_labels(files: Sequence[str], folder: Path, class_names: Sequence[str]) -> Labels:
    """Read the labels of several files.

    Args:
        files: each ``PATH``, or ``NAME=PATH`` for the source ``NAME`` of a mixture, whose image ids begin with
            ``NAME/``.
        folder: folder of relative paths.

    Raises:
        DataError: a file is missing or malformed, or two contain the same image.
    """
    labels = Labels(tuple(class_names))
    for entry in files:
        name, separator, path = entry.rpartition("=")
        labels.add(folder / path, f"{name}/" if separator else "")
    return labels


def read_records(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the header of a file and its images.

    Raises:
        DataError: the file is missing or malformed.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise DataError(f"{path}: {reason}; `python -m recipes.label_objects` writes such files") from None
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            keys = {"image", "boxes", "classes", "scores"} if records else {"detection_labels", "classes"}
            if not isinstance(record, dict) or not keys <= record.keys():
                raise ValueError(f"it lacks {', '.join(sorted(keys))}")
        except ValueError as error:
            raise DataError(f"{path}, line {number}: no detection labels ({error})") from None
        records.append(record)
    if not records:
        raise DataError(f"{path}: it is empty; `python -m recipes.label_objects` writes such files")
    if records[0]["detection_labels"] != VERSION:
        raise DataError(f"{path}: labels of version {records[0]['detection_labels']!r}, known is {VERSION}")
    return records[0], records[1:]


def _boxes(record: Mapping[str, Any], known: Mapping[str, int]) -> Boxes:
    classes = [known.get(normalise(name), -1) for name in record["classes"]]
    found = Boxes(
        clip_boxes(np.array(record["boxes"], np.float32).reshape(-1, 4), 1, 1),
        np.array(classes, np.int64),
        np.array(record["scores"], np.float32),
    )
    if not len(found.xyxy) == len(found.class_ids) == len(found.scores):
        raise ValueError("boxes, classes and scores differ in number")
    has_area = (found.xyxy[:, 2:] > found.xyxy[:, :2]).all(axis=1)
    return found.select(has_area & (found.class_ids >= 0) & (found.scores > 0))


class LabelWriter:
    """Writes a file of labels image by image, under a temporary name until it is complete.

    An unfinished file is continued; a line that a kill has truncated is removed.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """
        Args:
            header: content of the first line besides the version.

        Raises:
            DataError: the unfinished file was begun with another header.
        """
        self.path = path
        self._unfinished = path.with_name(f"{path.name}.unfinished")
        self._header = {"detection_labels": VERSION, **header}
        self.done: set[str] = set()
        """Ids of the images in the file."""
        self._stream: TextIO | None = None

    def __enter__(self) -> "LabelWriter":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._unfinished.exists():
            content = self._unfinished.read_text(encoding="utf-8")
            self._unfinished.write_text(content[: content.rfind("\n") + 1], encoding="utf-8")
        if self._unfinished.exists() and self._unfinished.stat().st_size:
            header, records = read_records(self._unfinished)
            if header != self._header:
                raise DataError(f"{self._unfinished} was begun with other settings; remove it to start afresh")
            self.done = {record["image"] for record in records}
        self._stream = self._unfinished.open("a", encoding="utf-8")
        if not self._stream.tell():
            self._write(self._header)
        return self

    def add(
        self, image: str, boxes: Iterable[Sequence[float]], classes: Sequence[str], scores: Iterable[float]
    ) -> None:
        """Write the boxes of an image: xyxy in fractions of its size, class names, scores."""
        self._write({
            "image": image,
            "boxes": [[round(float(value), 4) for value in box] for box in boxes],
            "classes": list(classes),
            "scores": [round(float(score), 3) for score in scores],
        })  # fmt: skip
        self.done.add(image)

    def finish(self) -> None:
        """Give the complete file its name."""
        assert self._stream is not None
        self._stream.close()
        self._unfinished.replace(self.path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self._stream is not None
        self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._stream.flush()
