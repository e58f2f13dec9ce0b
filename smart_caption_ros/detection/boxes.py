"""Boxes and the objects that detectors find."""

from dataclasses import dataclass

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class DetectedObject:
    """An object that a detector found in the frame."""

    class_name: str
    class_id: int
    score: float
    box_xyxy: Box
    """Pixels of the given frame, exclusive at the right and bottom."""
