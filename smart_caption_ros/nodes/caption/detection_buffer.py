"""Buffer of the latest detections, searched by the stamp of an image."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from smart_caption_ros.captioning import DetectedObject

CAPACITY = 64
"""Number of messages kept: about two seconds at 30 Hz."""


@dataclass(frozen=True)
class Detections:
    """The objects that a detector found in one image.

    Attributes:
        stamp_ns: stamp of the image in nanoseconds.
        frame_id: coordinate frame of the image; empty where the detector does not set it.
        objects: the objects; may be empty.
    """

    stamp_ns: int
    frame_id: str
    objects: tuple[DetectedObject, ...]


class DetectionBuffer:
    """Keeps the latest :data:`CAPACITY` messages; thread-safe."""

    def __init__(self) -> None:
        self._latest: deque[Detections] = deque(maxlen=CAPACITY)
        self._changed = threading.Condition()
        self._is_open = True

    def add(self, detections: Detections) -> bool:
        """Add a message; a full buffer discards the oldest one.

        Returns:
            Whether there was a message of the same stamp and frame, which is not used any more.
        """
        with self._changed:
            image = (detections.stamp_ns, detections.frame_id)
            replaces = any((other.stamp_ns, other.frame_id) == image for other in self._latest)
            self._latest.append(detections)
            self._changed.notify_all()
            return replaces

    @property
    def newest(self) -> Detections | None:
        """The message that arrived last; None where none has arrived."""
        with self._changed:
            return self._latest[-1] if self._latest else None

    def restart(self, stamp_ns: int) -> None:
        """Discard the last message with a later stamp and all before it: the clock has jumped back to `stamp_ns`.

        What arrived since then is kept: a detector may publish before the camera.
        """
        with self._changed:
            while any(detections.stamp_ns > stamp_ns for detections in self._latest):
                self._latest.popleft()

    def open(self) -> None:
        """Let :meth:`nearest` wait again."""
        self._is_open = True

    def close(self) -> None:
        """Discard all messages, and let nobody wait until :meth:`open`."""
        with self._changed:
            self._is_open = False
            self._latest.clear()
            self._changed.notify_all()

    def are_behind(self, stamp_ns: int, frame_id: str) -> bool:
        """Return whether there are detections of the camera of an image, all of them older than the image."""
        with self._changed:
            same_camera = self._of_camera(frame_id)
        return bool(same_camera) and all(detections.stamp_ns < stamp_ns for detections in same_camera)

    def nearest(self, stamp_ns: int, frame_id: str, *, until_s: float = 0.0) -> Detections | None:
        """Return the detections whose stamp is nearest to that of an image, or None where there are none.

        Detections of another coordinate frame belong to another camera and are ignored. Of two that are equally near,
        the one received last is returned.

        Args:
            stamp_ns: stamp of the image in nanoseconds.
            frame_id: coordinate frame of the image.
            until_s: time.monotonic() until which to wait for detections with this stamp or a later one.
        """
        with self._changed:
            while True:
                same_camera = self._of_camera(frame_id)
                remaining_s = until_s - time.monotonic()
                has_passed = any(detections.stamp_ns >= stamp_ns for detections in same_camera)
                if has_passed or remaining_s <= 0 or not self._is_open:
                    break
                self._changed.wait(remaining_s)
        return min(reversed(same_camera), key=lambda detections: abs(detections.stamp_ns - stamp_ns), default=None)

    def _of_camera(self, frame_id: str) -> list[Detections]:
        return [d for d in self._latest if not d.frame_id or not frame_id or d.frame_id == frame_id]
