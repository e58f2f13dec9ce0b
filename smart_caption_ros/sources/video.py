"""A video file, through OpenCV."""

import logging
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from smart_caption_ros.imaging.encoded_images import opencv_path, quiet_opencv
from smart_caption_ros.sources.source import Frame, FrameSource, SourceError

logger = logging.getLogger(__name__)

_MAX_BROKEN_FRAMES = 250
"""Number of consecutive unreadable frames that end a video, because OpenCV does not distinguish its end from damage."""


class Video(FrameSource):
    """The frames of a video file, stamped in seconds since its start.

    This last source in the registry accepts every file; FFmpeg decides whether it is a video.
    """

    def __init__(self, spec: str) -> None:
        super().__init__(spec)
        capture = self._open()
        count = capture.get(cv2.CAP_PROP_FRAME_COUNT)
        self.known_length = int(count) if count > 0 else None  # raw streams (.m2v, .mjpeg) do not say
        self._fps = capture.get(cv2.CAP_PROP_FPS)
        capture.release()

    @classmethod
    def accepts(cls, spec: str) -> bool:
        return Path(spec).is_file()

    @property
    def description(self) -> str:
        length = f"{self.known_length} frames" if self.known_length is not None else "unknown length"
        return f"video {self.spec} ({length}, {self._fps:g} frames a second)"

    def _open(self) -> cv2.VideoCapture:
        with quiet_opencv(), opencv_path(Path(self.spec)) as path:
            capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG)
        if not capture.isOpened():
            raise SourceError(f"{self.spec} is not an image, a video or a ROS 2 bag that can be read here")
        return capture

    def _frames(self, step: int) -> Iterator[Frame]:
        capture = self._open()
        name = Path(self.spec).name
        index = broken = 0
        try:
            while broken < _MAX_BROKEN_FRAMES:
                ok, image_bgr = capture.read()
                if not ok:
                    broken += 1
                    if self.known_length is not None and index + broken >= self.known_length:
                        break
                    continue
                for damaged in range(index, index + broken):
                    self._skip(f"{name}#{damaged:06d}", damaged, "the frame is damaged")
                index, broken = index + broken, 0
                stamp_ns = round(capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6)
                yield Frame(image_bgr.astype(np.uint8, copy=False), f"{name}#{index:06d}", index, stamp_ns)
                index += 1
        finally:
            capture.release()
        if self.known_length is not None and 0 < index < self.known_length:
            self.notes.append(f"{self.spec} ended after {index} of {self.known_length} frames")
            logger.warning(self.notes[-1])
