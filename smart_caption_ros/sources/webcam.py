"""Live images: a camera of this machine, or an RTSP stream."""

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from smart_caption_ros.imaging.encoded_images import quiet_opencv
from smart_caption_ros.sources.source import Frame, FrameSource, SourceError

_V4L_MAJOR = 81  # of the character devices of cameras (video4linux)


class Webcam(FrameSource):
    """Live frames of a camera, stamped when they are read from the driver.

    The camera is named by its index ("0"), or by its device or a link to it ("/dev/video0", "/dev/v4l/by-id/...").
    """

    is_live = True

    def __init__(self, spec: str) -> None:
        super().__init__(spec)
        # Opened here to check that the camera exists; kept for the first pass, since opening takes up to a second.
        self._opened: cv2.VideoCapture | None = self._open()

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return re.fullmatch(r"(/dev/video)?\d{1,3}", spec) is not None or _is_camera_device(spec)

    @property
    def description(self) -> str:
        return f"camera {self.spec.removeprefix('/dev/video')}"

    def _open(self) -> cv2.VideoCapture:
        number = self.spec.removeprefix("/dev/video")
        with quiet_opencv():
            if number.isdecimal():
                capture = cv2.VideoCapture(int(number))
            else:
                capture = cv2.VideoCapture(os.path.realpath(self.spec), cv2.CAP_V4L2)
        if not capture.isOpened():
            there = ", ".join(sorted(str(path) for path in Path("/dev").glob("video*"))) or "none"
            raise SourceError(f"cannot open {self.description} (video devices on this machine: {there})")
        # Drivers queue frames; a caption should describe the newest one.
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        return capture

    def _frames(self, step: int) -> Iterator[Frame]:
        capture, self._opened = self._opened or self._open(), None
        index = 0
        try:
            while True:
                ok, image_bgr = capture.read()
                if not ok:
                    raise SourceError(f"{self.description} stopped giving frames after {index}")
                name = f"{self.description.replace(' ', '')}#{index:06d}"
                yield Frame(image_bgr.astype(np.uint8, copy=False), name, index, time.time_ns())
                index += 1
        finally:
            capture.release()


class RtspStream(Webcam):
    """Live frames of an RTSP address, such as that of a network camera, through FFmpeg."""

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return spec.lower().startswith(("rtsp://", "rtsps://"))

    @property
    def description(self) -> str:
        return f"stream {re.sub('//[^/@]*@', '//', self.spec)}"  # without user and password

    def _open(self) -> cv2.VideoCapture:
        with quiet_opencv():
            capture = cv2.VideoCapture(self.spec, cv2.CAP_FFMPEG)
        if not capture.isOpened():
            raise SourceError(f"cannot open the {self.description}")
        return capture


def _is_camera_device(spec: str) -> bool:
    try:
        status = Path(spec).stat()
    except (OSError, ValueError):  # ValueError: a null byte
        return False
    return stat.S_ISCHR(status.st_mode) and os.major(status.st_rdev) == _V4L_MAJOR
