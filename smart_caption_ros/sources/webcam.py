"""A camera of this machine, selected by its index."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from smart_caption_ros.imaging.encoded_images import quiet_opencv
from smart_caption_ros.sources.source import Frame, FrameSource, SourceError


class Webcam(FrameSource):
    """Live frames of a camera ("0", "/dev/video0"), stamped when they are read from the driver."""

    def __init__(self, spec: str, *, topic: str | None = None) -> None:
        super().__init__(spec)
        self._index = int(spec.removeprefix("/dev/video"))
        # Opened here to check that the camera exists; kept for the first pass, since opening takes up to a second.
        self._opened: cv2.VideoCapture | None = self._open()

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return re.fullmatch(r"(/dev/video)?\d{1,3}", spec) is not None

    @property
    def description(self) -> str:
        return f"camera {self._index}"

    @property
    def known_length(self) -> None:
        return None

    def _open(self) -> cv2.VideoCapture:
        with quiet_opencv():
            capture = cv2.VideoCapture(self._index)
        if not capture.isOpened():
            there = ", ".join(sorted(str(path) for path in Path("/dev").glob("video*"))) or "none"
            raise SourceError(f"cannot open camera {self._index} (video devices on this machine: {there})")
        # Drivers queue frames; a caption should describe the newest one.
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        return capture

    def _frames(self) -> Iterator[Frame]:
        capture, self._opened = self._opened or self._open(), None
        index = 0
        try:
            while True:
                ok, image_bgr = capture.read()
                if not ok:
                    raise SourceError(f"camera {self._index} stopped giving frames after {index}")
                name = f"camera{self._index}#{index:06d}"
                yield Frame(image_bgr.astype(np.uint8, copy=False), name, index, time.time_ns())
                index += 1
        finally:
            capture.release()
