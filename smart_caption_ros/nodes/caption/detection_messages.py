"""Convert between objects and detection messages.

The messages are smart_caption_ros/DetectedObjectArray, vision_msgs/Detection2DArray and yolo_msgs/DetectionArray.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from std_msgs.msg import Header

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.detection.class_names import NO_OBJECTS, normalise
from smart_caption_ros.msg import DetectedObjectArray
from smart_caption_ros.text import shortened, visible


def objects_of_array(message: DetectedObjectArray, class_names: Mapping[int, str]) -> Iterable[DetectedObject | None]:
    """Convert a smart_caption_ros/DetectedObjectArray.

    Yields:
        One object per element, with an empty class name if its class id has no name; None for an element without a
        class, a finite score or an area.
    """
    for item in message.objects:
        box = item.box
        yield _object(item.class_name, item.class_id, item.score, (box.x1, box.y1, box.x2, box.y2), class_names)


def objects_of_vision(message: Any, class_names: Mapping[int, str]) -> Iterable[DetectedObject | None]:
    """Convert a vision_msgs/Detection2DArray like :func:`objects_of_array`, with the class of the highest score."""
    for detection in message.detections:
        hypotheses = [result.hypothesis for result in detection.results if math.isfinite(result.hypothesis.score)]
        if not hypotheses:
            yield None
            continue
        best = max(hypotheses, key=lambda hypothesis: hypothesis.score)
        bbox = detection.bbox
        box = _upright_box(bbox.center, bbox.size_x, bbox.size_y)
        yield _object(best.class_id, -1, best.score, box, class_names)


def objects_of_yolo(message: Any, class_names: Mapping[int, str]) -> Iterable[DetectedObject | None]:
    """Convert a yolo_msgs/DetectionArray of yolo_ros like :func:`objects_of_array`."""
    for detection in message.detections:
        bbox = detection.bbox
        box = _upright_box(bbox.center, bbox.size.x, bbox.size.y)
        yield _object(detection.class_name, detection.class_id, detection.score, box, class_names)


def to_vision(objects: Sequence[DetectedObject], header: Header, vision_msgs: Any) -> Any:
    """Convert objects to a vision_msgs/Detection2DArray; each has one hypothesis, whose id is the class name.

    Args:
        vision_msgs: the module vision_msgs.msg, which is not installed everywhere.
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


def _upright_box(centre: Any, width: float, height: float) -> Box:
    """Return the axis-aligned box around a box that may be rotated; its centre is a Pose2D of either package."""
    if width > 0 and height > 0 and centre.theta and math.isfinite(centre.theta):
        cosine, sine = abs(math.cos(centre.theta)), abs(math.sin(centre.theta))
        width, height = width * cosine + height * sine, width * sine + height * cosine
    x, y = centre.position.x, centre.position.y
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def class_names_of(label_info: Any) -> dict[int, str]:
    """Return the names of the numeric class ids in a vision_msgs/LabelInfo."""
    return {int(label.class_id): normalise(visible(label.class_name)) for label in label_info.class_map}


def _object(
    class_name: str, class_id: int, score: float, box_xyxy: Box, class_names: Mapping[int, str]
) -> DetectedObject | None:
    """Build an object; None if it has no class, its score or box is not finite, or its area is empty."""
    written = shortened(class_name.strip())
    if re.fullmatch(r"[+-]?\d+(\.0*)?", written, re.ASCII):
        written, class_id = "", int(written.partition(".")[0])
    if written:
        name = normalise(written if written.isprintable() else visible(written))
        if class_id < 0:
            class_id = next((number for number, known in class_names.items() if known == name), -1)
    else:
        name = class_names.get(class_id, "")
    has_class = name not in NO_OBJECTS if name or written else class_id >= 0
    left, top, right, bottom = box_xyxy
    if not has_class or not all(map(math.isfinite, (score, *box_xyxy))) or right <= left or bottom <= top:
        return None
    return DetectedObject(name, class_id, min(max(float(score), 0.0), 1.0), box_xyxy)
