"""Pictures on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import write_bytes_atomically

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg")
"""What `write_picture` writes."""

_JPEG_QUALITY = 90


def write_picture(path: Path, image_bgr: NDArray[np.uint8]) -> None:
    """Write uint8 HxWx3 BGR pixels as the PNG or JPEG file that the suffix says; else as :func:`write_png`.

    Raises:
        OSError: the file cannot be written.
        ValueError: the suffix is none of :data:`PICTURE_SUFFIXES`.
    """
    suffix = path.suffix.lower()
    if suffix not in PICTURE_SUFFIXES:
        raise ValueError(f"{path.name} does not end in {', '.join(PICTURE_SUFFIXES)}")
    _write(path, image_bgr, suffix, () if suffix == ".png" else (cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY))


def write_png(path: Path, image_bgr: NDArray[np.uint8]) -> None:
    """Write uint8 HxWx3 BGR pixels as a PNG file, whole or not at all; folders are made as needed.

    Raises:
        OSError: the file cannot be written.
    """
    _write(path, image_bgr, ".png")


def _write(path: Path, image_bgr: NDArray[np.uint8], suffix: str, options: Sequence[int] = ()) -> None:
    encoded, data = cv2.imencode(suffix, image_bgr, list(options))
    if not encoded:
        raise OSError(f"OpenCV could not encode {path.name} as {suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(path, data.tobytes())
