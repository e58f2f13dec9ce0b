"""A frame in, objects out: any ONNX detector of the layouts in `detector_layouts`."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.class_names import COCO_CLASSES, NO_OBJECTS, normalise
from smart_caption_ros.detection.errors import DetectorError
from smart_caption_ros.detection.layouts import Candidates, recognise
from smart_caption_ros.engines import AUTO, Engine, Graph, create_engine
from smart_caption_ros.imaging import check_image

MINIMUM_SCORE = 0.35
OVERLAP = 0.45
"""Of two boxes of one class whose intersection over union is larger, only the better one is kept."""
MAX_OBJECTS = 500


class Detector:
    """Finds objects in frames with an ONNX graph. Not thread-safe: give each thread one, or lock."""

    def __init__(
        self,
        path: Path,
        engine: Engine,
        *,
        minimum_score: float = MINIMUM_SCORE,
        class_names: Sequence[str] | None = None,
    ) -> None:
        """
        Args:
            path: the graph.
            engine: runs it.
            minimum_score: objects below it are left out; 0 to 1.
            class_names: the detector's classes in their order. None: those in `<stem>.txt` beside the graph (one a
                line), else those in the graph's metadata (`names` or `class_names`), else COCO's where there are 80.

        Raises:
            DetectorError: there is no such file, it is no detector of a known layout, or its classes have no names.
            EngineError: the graph cannot be loaded or run.
        """
        if not 0 <= minimum_score <= 1:
            raise ValueError(f"minimum_score must lie between 0 and 1, not {minimum_score}")
        if not path.is_file():
            raise DetectorError(f"{path}: there is no such detector; give the path of an ONNX file")
        self.path = path
        self.engine = engine.description
        self.minimum_score = minimum_score
        self._graph = engine.load(path)
        layout = recognise(self._graph)
        if layout is None:
            raise DetectorError(
                f"{path} maps {_listed(self._graph.inputs)} to {_listed(self._graph.outputs)}; known are YOLOX graphs "
                "(a picture [1, 3, H, W] to [1, A, 5 + classes]) and graphs that map a picture to boxes, scores and "
                "labels"
            )
        self._layout = layout
        self.class_names = _class_names(path, self._graph, layout.classes, class_names)

    @classmethod
    def from_onnx(
        cls,
        path: str | os.PathLike[str],
        engine: str = AUTO,
        threads: int | None = None,
        minimum_score: float = MINIMUM_SCORE,
        class_names: Sequence[str] | None = None,
    ) -> Detector:
        """Load a graph and an engine to run it; see :meth:`__init__`.

        Args:
            path: the ONNX file.
            engine: one of :data:`smart_caption_ros.engines.ENGINE_NAMES`; ``auto`` takes the fastest
                that works here.
            threads: CPU threads; None leaves the choice to the engine.
            minimum_score: objects below it are left out; 0 to 1.
            class_names: the detector's classes in their order.
        """
        return cls(Path(path), create_engine(engine, threads), minimum_score=minimum_score, class_names=class_names)

    @property
    def layout(self) -> str:
        """Name of the layout: one of :data:`detector_layouts.LAYOUT_NAMES`."""
        return self._layout.name

    def detect(self, image_bgr: np.ndarray) -> tuple[DetectedObject, ...]:
        """The objects in a frame, surest first, at most 500, each with a box inside the frame.

        Boxes that are not finite or have no area inside the frame are left out, and so are classes without a name.

        Args:
            image_bgr: (H, W, 3) uint8, of any size.

        Raises:
            ValueError: ``image_bgr`` is something else.
            EngineError: the engine failed.
        """
        check_image(image_bgr)
        height, width = image_bgr.shape[:2]
        outputs = self._graph.run(self._layout.inputs(image_bgr))
        found = inside_frame(self._layout.candidates(outputs, width, height), width, height, self.minimum_score)
        return objects_of(with_names(found, self.class_names), self.class_names, self._layout.overlapping)


def objects_of(found: Candidates, class_names: Sequence[str], overlapping: bool) -> tuple[DetectedObject, ...]:
    """The surest first; of boxes that may be of one object the best."""
    keep = best_of_each_class(found) if overlapping else np.argsort(-found.scores, kind="stable")
    return tuple(
        DetectedObject(
            class_name=class_names[found.class_ids[i]],
            class_id=int(found.class_ids[i]),
            score=float(found.scores[i]),
            box_xyxy=tuple(found.boxes_xyxy[i].tolist()),
        )
        for i in keep[:MAX_OBJECTS]
    )


def with_names(found: Candidates, class_names: Sequence[str]) -> Candidates:
    """Those of classes that have a name."""
    named = np.array([name not in NO_OBJECTS for name in class_names])
    known = (found.class_ids >= 0) & (found.class_ids < len(named))
    return _chosen(found, known & named[np.where(known, found.class_ids, 0)])


def best_of_each_class(found: Candidates, overlap: float = OVERLAP) -> NDArray[np.int64]:
    """Greedy non-maximum suppression within each class.

    Args:
        found: boxes without negative coordinates.
        overlap: the largest intersection over union that two boxes of one class may have.

    Returns:
        Indices of what is kept, highest score first.
    """
    if not found.scores.size:
        return np.zeros(0, np.int64)
    boxes = found.boxes_xyxy.astype(np.float64)
    # Every class gets a place of its own, so that no box meets one of another class.
    corners = boxes[:, :2] + (found.class_ids * (boxes.max() + 1))[:, None]
    placed = np.hstack([corners, boxes[:, 2:] - boxes[:, :2]])
    kept = cv2.dnn.NMSBoxes(placed.tolist(), found.scores.tolist(), 0.0, overlap)
    return np.asarray(kept, np.int64).reshape(-1)


def inside_frame(found: Candidates, width: int, height: int, minimum_score: float) -> Candidates:
    """The candidates that are sure enough, their boxes cut at the edges of the frame."""
    found = _chosen(found, np.isfinite(found.boxes_xyxy).all(axis=1) & (found.scores >= minimum_score))
    boxes = np.clip(found.boxes_xyxy, 0, np.array([width, height] * 2, np.float32))
    has_area = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    return _chosen(Candidates(boxes, np.minimum(found.scores, 1), found.class_ids), has_area)


def _chosen(found: Candidates, mask: NDArray[np.bool_]) -> Candidates:
    return Candidates(found.boxes_xyxy[mask], found.scores[mask], found.class_ids[mask])


def _listed(tensors: Sequence[object]) -> str:
    return ", ".join(map(str, tensors)) or "nothing"


def _class_names(path: Path, graph: Graph, classes: int | None, given: Sequence[str] | None) -> tuple[str, ...]:
    beside = path.with_suffix(".txt")
    if given is not None:
        names, origin = list(given), "the given class names"
    elif beside.is_file():
        names, origin = read_class_names(beside), str(beside)
    elif written := _names_in(graph.metadata):
        names, origin = written, f"the metadata of {path}"
    elif classes == len(COCO_CLASSES):
        return COCO_CLASSES
    else:
        what = "its classes are not known" if classes is None else f"it has {classes} classes"
        raise DetectorError(f"{path}: {what}; write their names, one a line and in their order, into {beside}")
    if classes is not None and len(names) != classes:
        raise DetectorError(f"{path} has {classes} classes, but {origin} are {len(names)} names")
    normalised = tuple(normalise(name) for name in names)
    if all(name in NO_OBJECTS for name in normalised):
        raise DetectorError(f"{path}: {origin} name no class")
    return normalised


def read_class_names(path: Path) -> list[str]:
    """Names of classes, one a line; the line number, from 0, is the class id.

    Raises:
        DetectorError: the file cannot be read or is not UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8").rstrip().splitlines()
    except OSError as error:
        raise DetectorError(f"{path}: the class names cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DetectorError(f"{path}: the class names cannot be read: it is not UTF-8 text") from None


def _names_in(metadata: Mapping[str, str]) -> list[str]:
    """Names from a graph's metadata: a list, names by their number, or names with commas between."""
    text = metadata.get("names") or metadata.get("class_names") or ""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = [name.strip() for name in text.split(",")] if text.strip() else []
    if isinstance(value, dict) and all(isinstance(key, int) and 0 <= key < 10_000 for key in value):
        value = [value.get(number, "") for number in range(max(value, default=-1) + 1)]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        return []
    return list(value)
