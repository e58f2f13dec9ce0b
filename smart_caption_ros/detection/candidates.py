"""From the candidates of a detector to its objects: score threshold, clipping, suppression, sorting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import DetectedObject, clip_boxes, non_maximum_suppression
from smart_caption_ros.detection.class_names import NO_OBJECTS

MAX_OBJECTS = 500
"""Objects a frame."""
MAXIMUM_IOU = 0.45
"""Of two boxes of one class with a larger IoU, only the one with the higher score is kept."""


@dataclass(frozen=True)
class Candidates:
    """N detections before filtering and suppression."""

    boxes_xyxy: NDArray[np.float32]
    """(N, 4), pixels of the frame; they may reach out of it."""
    scores: NDArray[np.float32]
    """(N,)"""
    class_ids: NDArray[np.int64]
    """(N,)"""

    def select(self, mask: NDArray[np.bool_]) -> Candidates:
        """Select the candidates where ``mask`` (N,) is True."""
        return Candidates(self.boxes_xyxy[mask], self.scores[mask], self.class_ids[mask])


def filter_candidates(
    candidates: Candidates, width: int, height: int, minimum_score: float, class_names: Sequence[str]
) -> Candidates:
    """Keep candidates with at least the minimum score, a class with a name, and area inside the frame.

    Boxes are clipped to the frame, scores above 1 are set to 1. Boxes that are not finite are left out.
    """
    known = (candidates.class_ids >= 0) & (candidates.class_ids < len(class_names))
    named = np.array([name not in NO_OBJECTS for name in class_names])[np.where(known, candidates.class_ids, 0)]
    finite = np.isfinite(candidates.boxes_xyxy).all(axis=1)
    kept = candidates.select(finite & (candidates.scores >= minimum_score) & known & named)
    boxes = clip_boxes(kept.boxes_xyxy, width, height)
    has_area = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    return Candidates(boxes, np.minimum(kept.scores, 1), kept.class_ids).select(has_area)


def to_objects(candidates: Candidates, class_names: Sequence[str], suppress: bool) -> tuple[DetectedObject, ...]:
    """Convert filtered candidates to objects, highest score first, at most :data:`MAX_OBJECTS`.

    Args:
        candidates: from :func:`filter_candidates`.
        class_names: names by class id.
        suppress: apply non-maximum suppression within each class.
    """
    if suppress:
        order = non_maximum_suppression(candidates.boxes_xyxy, candidates.scores, candidates.class_ids, MAXIMUM_IOU)
    else:
        order = np.argsort(-candidates.scores, kind="stable")
    return tuple(
        DetectedObject(
            class_name=class_names[candidates.class_ids[i]],
            class_id=int(candidates.class_ids[i]),
            score=float(candidates.scores[i]),
            box_xyxy=tuple(candidates.boxes_xyxy[i].tolist()),
        )
        for i in order[:MAX_OBJECTS]
    )
