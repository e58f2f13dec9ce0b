"""Detections in the submission format of the ACRV Robotic Vision Challenge, in place of ground truth.

One file per sequence: ``{"classes": [...], "detections": [[{"bbox": [...], "label_probs": [...]}, ...], ...]}``, with
one list per frame, empty if nothing was detected.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smart_caption_ros.detection.boxes import Box, four_numbers
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.json_text import finite_numbers
from smart_caption_ros.sources.acvr import acvr_class
from smart_caption_ros.sources.ground_truth import DatasetIssue, GroundTruth, GroundTruthFrame, plain_number
from smart_caption_ros.sources.json_files import read_json
from smart_caption_ros.sources.source import SourceError


@dataclass(frozen=True)
class _Detection:
    """A detection, reduced while the file is parsed, because 30 probabilities per box would fill the memory."""

    box: Box | None
    """Inclusive corners; None if the record has no valid box."""
    label: int | None
    """The most probable class; None if the record has no valid probabilities."""
    score: float


class DetectedFrames(GroundTruth):
    """The frames of a data set with the objects that a detector found in them.

    The class of an object is its most probable class; the object is left out if that is background or less probable
    than ``minimum_score``, 0 to 1. The n-th list of a file belongs to the n-th frame of the sequence. Memory holds the
    detections of one sequence.

    Args:
        path: a file named <sequence>.json, with any name if there is a single sequence, or a folder of such files.
    """

    def __init__(self, frames: GroundTruth, path: Path, minimum_score: float = 0.5) -> None:
        super().__init__(frames.spec)
        self._frames = frames
        self._minimum_score = minimum_score
        self._files = _files_of(path, frames.lengths)
        self.lengths = {name: frames.lengths[name] for name in self._files}
        for sequence, file in self._files.items():
            lists, length = len(_read(file)[1]), self.lengths[sequence]
            if lists != length:
                raise SourceError(
                    f"{file} holds {lists} lists of detections, but sequence {sequence} has {length} frames: "
                    "a submission has a list for every frame, even if it is empty"
                )

    def frames(self, every: int = 1) -> Iterator[GroundTruthFrame]:
        self.issues = self._frames.issues = self._frames.opening_issues()
        for sequence in self._frames.lengths:
            if sequence in self._files:
                yield from self.sequence_frames(sequence, every)
            else:
                self.issues.add(DatasetIssue.SEQUENCE_WITHOUT_DETECTIONS, sequence)

    def sequence_frames(self, sequence: str, every: int) -> Iterator[GroundTruthFrame]:
        classes, detections = _read(self._files[sequence])
        for frame in self._frames.sequence_frames(sequence, every):
            objects = []
            for number, detection in enumerate(detections[frame.index]):
                where = f"{frame.name}, detection {number}"
                if detection.box is None or detection.label is None or detection.label >= len(classes):
                    self.issues.add(DatasetIssue.MALFORMED_OBJECT, where)
                    continue
                name = classes[detection.label]
                class_name = acvr_class(name) or normalise(name)
                if detection.score < self._minimum_score or class_name == "none":
                    continue
                left, top, right, bottom = detection.box
                corners = (left, top, right + 1, bottom + 1)
                made = self._object(class_name, number, corners, (frame.width, frame.height), where)
                if made is not None:
                    objects.append(made)
            yield replace(frame, objects=tuple(objects))


def _files_of(path: Path, lengths: Mapping[str, int]) -> dict[str, Path]:
    if path.is_dir():
        candidates = sorted(file for file in path.iterdir() if file.suffix == ".json")
    elif path.is_file():
        if len(lengths) == 1:
            return {next(iter(lengths)): path}
        candidates = [path]
    else:
        raise SourceError(f"{path}: no such file or folder of detections")
    by_stem = {plain_number(file.stem): file for file in candidates}
    files = {name: by_stem[plain_number(name)] for name in lengths if plain_number(name) in by_stem}
    if not files:
        raise SourceError(
            f"{path} holds no detections of a sequence: expected <sequence>.json for one of {', '.join(lengths)}"
        )
    return files


def _read(path: Path) -> tuple[list[str], list[list[_Detection]]]:
    """Read the names of the classes, and the detections of each frame."""
    content = read_json(path, object_hook=_reduced)
    classes = content.get("classes") if isinstance(content, dict) else None
    frames = content.get("detections") if isinstance(content, dict) else None
    if not isinstance(classes, list) or not classes or not all(isinstance(name, str) and name for name in classes):
        raise SourceError(f"{path} is no submission of detections: it lacks the list of classes")
    if not isinstance(frames, list) or not all(
        isinstance(frame, list) and all(isinstance(detection, _Detection) for detection in frame) for frame in frames
    ):
        raise SourceError(f"{path} is no submission of detections: `detections` must hold a list of objects a frame")
    return classes, frames


def _reduced(record: dict[str, Any]) -> Any:
    if "bbox" not in record and "label_probs" not in record:
        return record
    probabilities = finite_numbers(record.get("label_probs"))
    score = max(probabilities) if probabilities else 0.0
    return _Detection(four_numbers(record.get("bbox")), probabilities.index(score) if probabilities else None, score)
