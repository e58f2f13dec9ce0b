"""Object detection with an ONNX graph of any layout in :mod:`smart_caption_ros.detection.layouts`."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.detection.class_names import (
    COCO_CLASSES,
    NO_OBJECTS,
    DetectorError,
    normalise,
    parse_class_names,
    read_class_names,
)
from smart_caption_ros.detection.detections import ClassScores, DetectorOutput
from smart_caption_ros.detection.layouts import recognise
from smart_caption_ros.engines import AUTO, Engine, Graph, load_with
from smart_caption_ros.imaging import check_image

MINIMUM_SCORE = 0.35


class Detector:
    """An object detector. It is not thread-safe: give each thread one, or lock."""

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
            minimum_score: objects with a lower score are left out; 0 to 1.
            class_names: the detector's classes in their order. None: the names in ``<stem>.txt`` beside the graph (one
                a line), else in the graph's metadata (``names`` or ``class_names``), else COCO's if there are 80.

        Raises:
            DetectorError: the file is missing, its layout is unknown, or its classes have no names.
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
    ) -> "Detector":
        """Load a graph and an engine to run it; arguments as :meth:`__init__` and :func:`load_with`, and errors."""

        def load(created: Engine) -> Detector:
            return cls(Path(path), created, minimum_score=minimum_score, class_names=class_names)

        return load_with(engine, threads, load)[0]

    @property
    def layout(self) -> str:
        """Name of the layout: one of :data:`smart_caption_ros.detection.layouts.LAYOUT_NAMES`."""
        return self._layout.name

    def detect(self, image_bgr: np.ndarray) -> tuple[DetectedObject, ...]:
        """Detect the objects in a frame: highest score first, at most 500, each with a box inside the frame.

        Args:
            image_bgr: (H, W, 3) uint8, of any size.

        Raises:
            ValueError: ``image_bgr`` is something else.
            EngineError: the engine failed.
        """
        return self.detections(image_bgr).objects

    def detections(self, image_bgr: np.ndarray) -> DetectorOutput:
        """Detect the objects in a frame, as :meth:`detect`, with the scores of all classes."""
        check_image(image_bgr)
        height, width = image_bgr.shape[:2]
        outputs = self._graph.run(self._layout.inputs(image_bgr))
        candidates = self._layout.candidates(outputs, width, height)
        highest = np.zeros(len(self.class_names), np.float32)
        known = (candidates.class_ids >= 0) & (candidates.class_ids < len(highest))
        np.fmax.at(highest, candidates.class_ids[known], candidates.scores[known])
        return DetectorOutput(
            candidates.to_objects(
                width, height, self.minimum_score, self.class_names, suppress=self._layout.overlapping
            ),
            ClassScores.of_classes(highest, self.class_names),
        )


def _listed(tensors: Sequence[object]) -> str:
    return ", ".join(map(str, tensors)) or "nothing"


def _class_names(path: Path, graph: Graph, classes: int | None, given: Sequence[str] | None) -> tuple[str, ...]:
    """Find and check the class names of a detector; see :meth:`Detector.__init__`."""
    beside = path.with_suffix(".txt")
    remedy = f"write their names, one a line and in their order, into {beside}"
    if given is not None:
        names, origin = list(given), "the given class names"
    elif beside.is_file():
        names, origin = read_class_names(beside), str(beside)
    else:
        try:
            names = parse_class_names(graph.metadata.get("names") or graph.metadata.get("class_names") or "")
        except ValueError as error:
            raise DetectorError(f"{path}: the names of its classes in its metadata: {error}; {remedy}") from None
        origin = f"the metadata of {path}"
        if not names and classes == len(COCO_CLASSES):
            return COCO_CLASSES
        if not names:
            what = "its classes are not known" if classes is None else f"it has {classes} classes"
            raise DetectorError(f"{path}: {what}; {remedy}")
    if classes is not None and len(names) != classes:
        raise DetectorError(f"{path} has {classes} classes, but {origin} are {len(names)} names")
    normalised = tuple(normalise(name) for name in names)
    if all(name in NO_OBJECTS for name in normalised):
        raise DetectorError(f"{path}: {origin} name no class")
    return normalised
