"""Pictures on disk."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray


def write_png(path: Path, image_bgr: NDArray[np.uint8]) -> None:
    """Write uint8 HxWx3 BGR pixels as a PNG file, whole or not at all; folders are made as needed.

    Raises:
        OSError: the file cannot be written.
    """
    encoded, data = cv2.imencode(".png", image_bgr)
    if not encoded:
        raise OSError(f"OpenCV could not encode {path.name} as PNG")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(data.tobytes())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
