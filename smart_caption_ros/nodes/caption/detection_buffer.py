"""Buffer of the latest detections of a camera, which are found by the header of an image."""

import threading
import time
from collections import deque
from dataclasses import dataclass

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.text import visible

CAPACITY = 64
"""Number of messages kept: about two seconds at 30 Hz."""
JUMP_S = 1.0
"""Minimum backward step between the stamps of two images that means that the clock was set back, seconds."""
_OTHER_CLOCK_S = 3600.0  # no detector is that slow


@dataclass(frozen=True)
class Detections:
    """The objects that a detector found in one image.

    Attributes:
        frame_id: coordinate frame of the image; empty if the detector does not set it.
    """

    stamp_ns: int
    frame_id: str
    objects: tuple[DetectedObject, ...]


@dataclass(frozen=True)
class FoundDetections:
    """The detections of one image, or the reason why it has none.

    Attributes:
        objects: the detected objects; None if no detections belong to the image.
        distance_s: time between the image and these detections, seconds.
        missing_reason: why no detections belong to the image; empty if some do.
        are_late: whether the detections of the image may still arrive.
    """

    objects: tuple[DetectedObject, ...] | None
    distance_s: float = 0.0
    missing_reason: str = ""
    are_late: bool = False


class DetectionBuffer:
    """Keeps the latest :data:`CAPACITY` messages; thread-safe."""

    def __init__(self) -> None:
        self._latest: deque[Detections] = deque(maxlen=CAPACITY)
        self._changed = threading.Condition()
        self._is_open = True
        self._image_ns = 0

    def add(self, detections: Detections) -> bool:
        """Add a message; return whether it replaces one with the same stamp and frame."""
        with self._changed:
            image = (detections.stamp_ns, detections.frame_id)
            replaces = any((other.stamp_ns, other.frame_id) == image for other in self._latest)
            self._latest.append(detections)
            self._changed.notify_all()
            return replaces

    def note_image(self, stamp_ns: int) -> None:
        """Note the stamp of a received image; if the clock was set back, discard the detections from before that.

        Detections that have arrived since then are kept, because a detector may publish before the camera.
        """
        with self._changed:
            if stamp_ns and stamp_ns < self._image_ns - JUMP_S * 1e9:  # a bag or a simulation starts again
                while any(detections.stamp_ns > stamp_ns for detections in self._latest):
                    self._latest.popleft()
                self._image_ns = stamp_ns
            self._image_ns = max(stamp_ns, self._image_ns)

    def open(self) -> None:
        """Let :meth:`wait` wait again."""
        self._is_open = True

    def close(self) -> None:
        """Discard all messages, and end all waits until :meth:`open`."""
        with self._changed:
            self._is_open = False
            self._image_ns = 0
            self._latest.clear()
            self._changed.notify_all()

    def wait(self, stamp_ns: int, frame_id: str, until_s: float) -> None:
        """Wait for detections with the stamp of an image or a later one, until a time of :func:`time.monotonic`."""
        with self._changed:
            while (
                self._is_open
                and stamp_ns
                and all(detections.stamp_ns < stamp_ns for detections in self._of_camera(frame_id))
                and (remaining_s := until_s - time.monotonic()) > 0
            ):
                self._changed.wait(remaining_s)

    def find(self, stamp_ns: int, frame_id: str, slop_s: float) -> FoundDetections:
        """Find the detections whose stamp is nearest to that of an image.

        Detections of another coordinate frame belong to another camera and are ignored. Of two messages that are
        equally near, the one received last is taken.

        Args:
            stamp_ns: stamp of the image in nanoseconds; 0 for an image without a stamp.
            slop_s: maximum time between the image and its detections.
        """
        if not stamp_ns:
            return FoundDetections(None, missing_reason="the image has no stamp")
        with self._changed:
            same_camera = self._of_camera(frame_id)
            newest = self._latest[-1] if self._latest else None
        if newest is None:
            return FoundDetections(None, missing_reason="no detections have arrived")
        nearest = min(reversed(same_camera), key=lambda detections: abs(detections.stamp_ns - stamp_ns), default=newest)
        distance_s = abs(nearest.stamp_ns - stamp_ns) / 1e9
        if same_camera and distance_s <= slop_s:
            return FoundDetections(nearest.objects, distance_s)
        # The distance to the newest, because the nearest may be from before the clock of the detector was changed.
        newest_s = abs(newest.stamp_ns - stamp_ns) / 1e9
        if newest.frame_id and frame_id and newest.frame_id != frame_id:
            reason = (
                f"the last detections are of the frame {visible(newest.frame_id)}, and the image is of "
                f"{visible(frame_id)}"
            )
        elif newest_s > _OTHER_CLOCK_S:
            reason = f"the last detections are {newest_s:.0f} s away: the clocks of detector and camera differ"
        else:
            reason = f"the nearest detections are {distance_s:.3f} s away, and detection_slop_s is {slop_s:g}"
        are_late = bool(same_camera) and all(detections.stamp_ns < stamp_ns for detections in same_camera)
        return FoundDetections(None, distance_s, reason, are_late)

    def _of_camera(self, frame_id: str) -> list[Detections]:
        return [d for d in self._latest if not d.frame_id or not frame_id or d.frame_id == frame_id]


@dataclass(frozen=True)
class ExpectedDetections:
    """The detections of one image, which may not have arrived yet.

    Attributes:
        slop_s: maximum time between the image and detections with another stamp.
        until_s: end of the wait for them by :func:`time.monotonic`; 0 if they are not waited for.
        are_expected: whether a detector publishes for this camera or has published.
    """

    buffer: DetectionBuffer
    stamp_ns: int
    frame_id: str
    slop_s: float
    until_s: float = 0.0
    are_expected: bool = False

    def wait(self) -> None:
        """Wait until the detections of the image have arrived, or until `until_s`."""
        self.buffer.wait(self.stamp_ns, self.frame_id, self.until_s)

    def find(self) -> FoundDetections:
        """Return the detections that have arrived."""
        return self.buffer.find(self.stamp_ns, self.frame_id, self.slop_s)
