"""Boxes of the photographs that a detector learns from: one file format, whoever drew them.

A file is UTF-8 text, a JSON object a line. The first says what the file is: ``{"detection_labels": 1, "made_by": ...,
"classes": [...]}``, the classes that were looked for, so that a photograph without a box of one of them shows none.
Each other line is a photograph: ``{"image": id, "boxes": [[x1, y1, x2, y2], ...], "classes": [...], "scores": [...]}``,
boxes in fractions of its width and height, classes by their names, scores from 0 to 1 (1: a person or a renderer said
so, less: how sure a detector was).
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
    """Of one photograph. N boxes."""

    xyxy: NDArray[np.float32]
    """(N, 4), fractions of the photograph's width and height, in [0, 1]."""
    class_ids: NDArray[np.int64]
    """(N,), places in the list of classes that they were read for."""
    scores: NDArray[np.float32]
    """(N,), in (0, 1]."""

    def __len__(self) -> int:
        return len(self.scores)

    def chosen(self, which: NDArray[np.bool_]) -> "Boxes":
        """Those where ``which`` (N,) is True."""
        return Boxes(self.xyxy[which], self.class_ids[which], self.scores[which])


@dataclass
class Labels:
    """The boxes of many photographs, for a detector of certain classes."""

    class_names: tuple[str, ...]
    boxes: dict[str, Boxes] = field(default_factory=dict)
    """By image id; a photograph that is not here was not looked at."""
    _sought: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    made_by: list[str] = field(default_factory=list)
    """Who drew them, each once."""

    def sought(self, image: str) -> NDArray[np.bool_]:
        """(classes,) which classes were looked for in a photograph that has labels."""
        return self._sought[image]

    def add(self, path: Path, prefix: str = "") -> None:
        """Read a file; classes that this detector does not have are left out.

        Args:
            prefix: goes before each image id.

        Raises:
            DataError: the file is missing or malformed, or a photograph has labels already.
        """
        header, records = read_records(path)
        if (teacher := str(header.get("made_by", "unknown"))) not in self.made_by:
            self.made_by.append(teacher)
        known = {name: index for index, name in enumerate(self.class_names)}
        sought = np.isin(self.class_names, [normalise(name) for name in header["classes"]])
        for record in records:
            image = prefix + record["image"]
            if image in self.boxes:
                raise DataError(f"{path}, image {image}: it has labels already, from this file or another")
            try:
                self.boxes[image] = _boxes(record, known)
            except (AttributeError, TypeError, ValueError) as error:
                raise DataError(f"{path}, image {image}: {error}") from None
            self._sought[image] = sought


def read_labels(files: Sequence[str], folder: Path, class_names: Sequence[str]) -> Labels:
    """The labels of several files.

    Args:
        files: each ``PATH``, or ``NAME=PATH`` for the data set ``NAME`` of a mixture, whose image ids begin with
            ``NAME/``.
        folder: that relative paths are below.

    Raises:
        DataError: a file is missing or malformed, or two have the same photograph.
    """
    labels = Labels(tuple(class_names))
    for entry in files:
        name, separator, path = entry.rpartition("=")
        labels.add(folder / path, f"{name}/" if separator else "")
    return labels


def read_records(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first line of a file, and the others.

    Raises:
        DataError: the file is missing or malformed.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise DataError(f"{path}: {reason}; `python -m training.label_objects` writes such files") from None
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
        raise DataError(f"{path}: it is empty; `python -m training.label_objects` writes such files")
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
        raise ValueError("boxes, classes and scores are not as many")
    has_area = (found.xyxy[:, 2:] > found.xyxy[:, :2]).all(axis=1)
    return found.chosen(has_area & (found.class_ids >= 0) & (found.scores > 0))


class LabelWriter:
    """Writes a file of labels photograph by photograph, under another name until all are there.

    A file that was left unfinished goes on where it stopped; a line that a kill has cut in two is done again.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """
        Args:
            header: what the first line says beside the version.

        Raises:
            DataError: the unfinished file was begun with another header.
        """
        self.path = path
        self._unfinished = path.with_name(f"{path.name}.unfinished")
        self._header = {"detection_labels": VERSION, **header}
        self.done: set[str] = set()
        """Image ids that are in the file."""
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
        """Write a photograph's boxes: xyxy in fractions of it, names of classes, scores."""
        self._write({
            "image": image,
            "boxes": [[round(float(value), 4) for value in box] for box in boxes],
            "classes": list(classes),
            "scores": [round(float(score), 3) for score in scores],
        })  # fmt: skip
        self.done.add(image)

    def finish(self) -> None:
        """All photographs are there: the file gets its name."""
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
