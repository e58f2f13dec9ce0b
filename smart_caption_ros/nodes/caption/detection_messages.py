"""Convert between objects and the messages for detections.

These are smart_caption_ros/DetectedObjectArray and vision_msgs/Detection2DArray.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from std_msgs.msg import Header

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.detection.class_names import NO_OBJECTS, normalise
from smart_caption_ros.msg import DetectedObjectArray
from smart_caption_ros.text import shortened


def objects_of_array(message: DetectedObjectArray, class_names: Sequence[str]) -> Iterable[DetectedObject | None]:
    """Convert a smart_caption_ros/DetectedObjectArray.

    Args:
        message: the array.
        class_names: names of the numeric class ids.

    Yields:
        One object per element; None for an element without a known class, a finite score or an area.
    """
    for item in message.objects:
        box = item.box
        yield _object(item.class_name, item.class_id, item.score, (box.x1, box.y1, box.x2, box.y2), class_names)


def objects_of_vision(message: Any, class_names: Sequence[str]) -> Iterable[DetectedObject | None]:
    """Convert a vision_msgs/Detection2DArray; the hypothesis with the highest score gives the class.

    Args:
        message: the array.
        class_names: names of the numeric class ids.

    Yields:
        One object per detection; None for a detection without a known class, a finite score or an area.
    """
    for detection in message.detections:
        hypotheses = [result.hypothesis for result in detection.results if math.isfinite(result.hypothesis.score)]
        if not hypotheses:
            yield None
            continue
        best = max(hypotheses, key=lambda hypothesis: hypothesis.score)
        yield _object(best.class_id, -1, best.score, _upright_box(detection.bbox), class_names)


def to_vision(objects: Sequence[DetectedObject], header: Header, vision_msgs: Any) -> Any:
    """Convert objects to a vision_msgs/Detection2DArray.

    Args:
        objects: the objects; boxes in pixels.
        header: header of their image.
        vision_msgs: the module vision_msgs.msg, which is not installed everywhere.

    Returns:
        The array. Every detection has one hypothesis, whose class id is the name of the class.
    """
    detections = []
    for item in objects:
        hypothesis = vision_msgs.ObjectHypothesisWithPose()
        hypothesis.hypothesis.class_id, hypothesis.hypothesis.score = item.class_name, float(item.score)
        left, top, right, bottom = item.box_xyxy
        bbox = vision_msgs.BoundingBox2D(size_x=float(right - left), size_y=float(bottom - top))
        bbox.center.position.x, bbox.center.position.y = (left + right) / 2, (top + bottom) / 2
        detections.append(vision_msgs.Detection2D(header=header, results=[hypothesis], bbox=bbox))
    return vision_msgs.Detection2DArray(header=header, detections=detections)


def _upright_box(bbox: Any) -> Box:
    """Return the axis-aligned box around a vision_msgs/BoundingBox2D, which may be rotated."""
    centre, width, height = bbox.center, bbox.size_x, bbox.size_y
    if width > 0 and height > 0 and centre.theta and math.isfinite(centre.theta):
        cosine, sine = abs(math.cos(centre.theta)), abs(math.sin(centre.theta))
        width, height = width * cosine + height * sine, width * sine + height * cosine
    x, y = centre.position.x, centre.position.y
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _object(
    class_name: str, class_id: int, score: float, box_xyxy: Box, class_names: Sequence[str]
) -> DetectedObject | None:
    """Build an object; None where the class is unknown, the score or the box is not finite, or the area is empty."""
    name = normalise(shortened(class_name))
    if re.fullmatch(r"\d{1,9}", name, re.ASCII):
        name, class_id = "", int(name)
    if name:
        if class_id < 0 and name in class_names:
            class_id = class_names.index(name)
    elif 0 <= class_id < len(class_names):
        name = class_names[class_id]
    left, top, right, bottom = box_xyxy
    if name in NO_OBJECTS or not all(map(math.isfinite, (score, *box_xyxy))) or right <= left or bottom <= top:
        return None
    return DetectedObject(name, class_id, min(max(float(score), 0.0), 1.0), box_xyxy)
