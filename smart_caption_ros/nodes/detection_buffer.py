"""The detections of the last moments, and which of them belong to an image."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from smart_caption_ros.captioning import DetectedObject

CAPACITY = 64
"""Messages that are kept; at 30 a second, those of the last two seconds."""


@dataclass(frozen=True)
class Detections:
    """What a detector found in one image.

    Attributes:
        stamp_ns: the stamp of the image, nanoseconds.
        frame_id: the coordinate frame of the image; empty where the detector leaves it out.
        objects: what it found; there may be none.
    """

    stamp_ns: int
    frame_id: str
    objects: tuple[DetectedObject, ...]


class DetectionBuffer:
    """Keeps the newest `CAPACITY` messages; safe to use from any thread."""

    def __init__(self) -> None:
        self._newest: deque[Detections] = deque(maxlen=CAPACITY)
        self._changed = threading.Condition()

    def add(self, detections: Detections) -> None:
        """Keeps one more, and forgets the one that came first where there are too many."""
        with self._changed:
            self._newest.append(detections)
            self._changed.notify_all()

    def clear(self) -> None:
        """Forgets all of them."""
        with self._changed:
            self._newest.clear()

    def nearest(self, stamp_ns: int, frame_id: str, *, wait_s: float = 0.0) -> Detections | None:
        """Those of the image with this stamp, else those nearest in time; None where there are none at all.

        Detections of another coordinate frame are of another camera. Of two that are equally near the one that came
        last is taken.

        Args:
            stamp_ns: the stamp of the image, nanoseconds.
            frame_id: the coordinate frame of the image.
            wait_s: how long to wait for a detector that has not come to this image yet.
        """
        deadline_s = time.monotonic() + wait_s
        with self._changed:
            while True:
                same_camera = [d for d in self._newest if not d.frame_id or not frame_id or d.frame_id == frame_id]
                remaining_s = deadline_s - time.monotonic()
                if remaining_s <= 0 or any(d.stamp_ns >= stamp_ns for d in same_camera):
                    break
                self._changed.wait(remaining_s)
        return min(reversed(same_camera), key=lambda d: abs(d.stamp_ns - stamp_ns), default=None)
