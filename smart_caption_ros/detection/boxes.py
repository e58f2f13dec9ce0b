"""Boxes and detected objects: one box type, one clipping and one non-maximum suppression.

Boxes are xyxy (left, top, right, bottom), exclusive at the right and bottom. The functions run on the robot, which has
no torch; training uses them too, since PyPI's torchvision cannot be imported beside the CPU build of the pinned torch.
"""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.json_text import finite_numbers

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class DetectedObject:
    """An object that a detector found in a frame."""

    class_name: str
    class_id: int
    score: float
    """From 0 to 1."""
    box_xyxy: Box
    """Pixels of the frame."""


def clip_boxes(boxes_xyxy: NDArray[Any], width: float, height: float) -> NDArray[Any]:
    """Clip boxes (..., 4) to a frame; the dtype is kept."""
    return np.clip(boxes_xyxy, 0, np.array([width, height] * 2, boxes_xyxy.dtype))


def box_areas(boxes_xyxy: NDArray[Any]) -> NDArray[Any]:
    """Compute the areas of boxes, (..., 4) -> (...); 0 for a box whose sides are negative."""
    sides = np.maximum(boxes_xyxy[..., 2:] - boxes_xyxy[..., :2], 0)
    return np.asarray(sides[..., 0] * sides[..., 1])


def non_maximum_suppression(
    boxes_xyxy: NDArray[np.float32],
    scores: NDArray[np.float32],
    class_ids: NDArray[np.int64],
    maximum_iou: float,
) -> NDArray[np.int64]:
    """Suppress, greedily and within each class, boxes that overlap a box with a higher score.

    Args:
        boxes_xyxy: (N, 4), without negative coordinates; scores and class_ids: (N,).
        maximum_iou: the largest IoU that two kept boxes of one class may have.

    Returns:
        Indices of the kept boxes, highest score first.
    """
    if not scores.size:
        return np.zeros(0, np.int64)
    boxes = boxes_xyxy.astype(np.float64)
    # Each class is moved to a region of its own, so that boxes of different classes never overlap.
    corners = boxes[:, :2] + (class_ids * (boxes.max() + 1))[:, None]
    xywh = np.hstack([corners, boxes[:, 2:] - boxes[:, :2]])
    kept = cv2.dnn.NMSBoxes(xywh.tolist(), scores.tolist(), 0.0, maximum_iou)
    return np.asarray(kept, np.int64).reshape(-1)


def four_numbers(value: Any) -> Box | None:
    """Read a box from JSON; None unless the value is a list of four finite numbers."""
    numbers = finite_numbers(value)
    if numbers is None or len(numbers) != 4:
        return None
    left, top, right, bottom = numbers
    return left, top, right, bottom
