"""JPEG, PNG and the other picture formats in memory -> pixels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image


def decode_encoded(data: bytes | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Decode the bytes of an image file to uint8 HxWx3 BGR.

    Grey becomes three equal channels, transparency is dropped, 16-bit values are divided by 256, and the
    orientation stored by a camera (EXIF) is applied.

    Raises:
        ValueError: one clause that says what is wrong with the bytes.
    """
    raw = bytes(data)
    if not raw:
        raise ValueError("it is empty")
    if is_truncated_jpeg(raw):
        # libjpeg would fill the missing part with grey and call it a picture.
        raise ValueError(f"the JPEG data is truncated ({len(raw)} bytes)")
    with quiet_opencv():
        try:
            image = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)
        except cv2.error as error:
            raise ValueError(f"OpenCV refuses it ({' '.join(str(error.err).split())})") from error
    if image is None:
        raise ValueError("it is damaged or not an image in a format that OpenCV reads")
    return image.astype(np.uint8, copy=False)


def size_of_image(path: Path) -> tuple[int, int]:
    """Width and height that `decode_encoded` would give, from the head of the file alone.

    Raises:
        ValueError: one clause that says what is wrong with the file.
    """
    try:
        with Image.open(path) as image:
            # A PNG without EXIF would be decoded whole in search of it.
            exif = image.getexif() if image.format != "PNG" or "exif" in image.info else {}
            turned = exif.get(ExifTags.Base.Orientation) in (5, 6, 7, 8)
            return image.size[::-1] if turned else image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged or not an image"
        raise ValueError(reason) from error


def is_truncated_jpeg(raw: bytes) -> bool:
    """Whether the bytes are a JPEG whose last scan has no end marker.

    Marker bytes cannot occur inside the entropy-coded data of a scan, so the last start of a scan (FFDA)
    must be followed by an end of image (FFD9); bytes that some cameras append after it do no harm.
    """
    return raw.startswith(b"\xff\xd8") and raw.rfind(b"\xff\xd9") < max(raw.rfind(b"\xff\xda"), 2)


@contextmanager
def quiet_opencv() -> Iterator[None]:
    """Keep OpenCV's own log lines off the terminal while we turn a failure into one sentence."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # AV_LOG_QUIET; read when FFmpeg is first used
    previous = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    try:
        yield
    finally:
        cv2.utils.logging.setLogLevel(previous)
