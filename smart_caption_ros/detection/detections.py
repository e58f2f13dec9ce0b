"""The output of a detector for a frame: its objects and the scores of its classes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import DetectedObject, clip_boxes, non_maximum_suppression
from smart_caption_ros.detection.class_names import NO_OBJECTS, normalise

MAX_OBJECTS = 500
"""Objects a frame."""
MAXIMUM_IOU = 0.45
"""Of two boxes of one class with a larger IoU, only the one with the higher score is kept."""


@dataclass(frozen=True)
class ClassScores:
    """The highest score of each class in a frame."""

    scores: Mapping[str, float]
    """0 to 1, by normalised class name."""
    complete: bool
    """Whether all classes of the detector are in it, with scores however low; False if it has only the classes of
    reported objects, so that nothing is known of the others."""

    @classmethod
    def of_objects(cls, objects: Iterable[DetectedObject]) -> "ClassScores":
        """Take the scores of reported objects."""
        best: dict[str, float] = {}
        for detected in objects:
            name = normalise(detected.class_name)
            best[name] = max(best.get(name, 0.0), detected.score)
        return cls(best, complete=False)

    @classmethod
    def of_classes(cls, highest: NDArray[np.float32], class_names: Sequence[str]) -> "ClassScores":
        """Take the scores of all classes of a detector.

        Args:
            highest: (C,), limited to 0 to 1 here; NaN counts as 0.
            class_names: normalised, C names; those that stand for no object are left out.
        """
        limited = np.clip(np.nan_to_num(highest, nan=0.0), 0, 1).tolist()
        best: dict[str, float] = {}
        for name, score in zip(class_names, limited, strict=True):
            if name not in NO_OBJECTS:
                best[name] = max(best.get(name, 0.0), score)
        return cls(best, complete=True)


@dataclass(frozen=True)
class DetectorOutput:
    """The output of a detector for a frame."""

    objects: tuple[DetectedObject, ...]
    """With at least the detector's minimum score, highest first."""
    class_scores: ClassScores
    """Of all classes, also below the minimum score."""


@dataclass(frozen=True)
class Candidates:
    """N detections before filtering and suppression."""

    boxes_xyxy: NDArray[np.float32]
    """(N, 4), pixels of the frame; may extend beyond it."""
    scores: NDArray[np.float32]
    """(N,)"""
    class_ids: NDArray[np.int64]
    """(N,)"""

    def to_objects(
        self, width: int, height: int, minimum_score: float, class_names: Sequence[str], *, suppress: bool
    ) -> tuple[DetectedObject, ...]:
        """Return the objects, highest score first, at most :data:`MAX_OBJECTS`; scores above 1 are set to 1.

        Boxes are clipped to the frame; those that are not finite or lie outside are left out, as are classes without a
        name.
        """
        boxes = clip_boxes(self.boxes_xyxy, width, height)
        known = (self.class_ids >= 0) & (self.class_ids < len(class_names))
        named = np.array([name not in NO_OBJECTS for name in class_names])[np.where(known, self.class_ids, 0)]
        has_area = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1]) & np.isfinite(self.boxes_xyxy).all(axis=1)
        kept = has_area & (self.scores >= minimum_score) & known & named
        boxes, scores, class_ids = boxes[kept], np.minimum(self.scores[kept], 1), self.class_ids[kept]
        if suppress:
            order = non_maximum_suppression(boxes, scores, class_ids, MAXIMUM_IOU)
        else:
            order = np.argsort(-scores, kind="stable")
        return tuple(
            DetectedObject(class_names[class_ids[i]], int(class_ids[i]), float(scores[i]), tuple(boxes[i].tolist()))
            for i in order[:MAX_OBJECTS]
        )
