"""Pictures as PNG and JPEG, in memory and in files."""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.files import write_bytes_atomically

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg")

JPEG_QUALITY = 90


def encode_picture(image_bgr: NDArray[np.uint8], suffix: str, jpeg_quality: int = JPEG_QUALITY) -> bytes:
    """Encode pixels, uint8 (H, W, 3) BGR, as PNG or JPEG.

    Args:
        suffix: one of :data:`PICTURE_SUFFIXES`, in lower case.
        jpeg_quality: 1 to 100; PNG ignores it.

    Raises:
        ValueError: the suffix is not one of these.
        OSError: OpenCV cannot encode the pixels.
    """
    if suffix not in PICTURE_SUFFIXES:
        raise ValueError(f"{suffix!r} is not one of {', '.join(PICTURE_SUFFIXES)}")
    options = [] if suffix == ".png" else [cv2.IMWRITE_JPEG_QUALITY, jpeg_quality]
    encoded, data = cv2.imencode(suffix, image_bgr, options)
    if not encoded:
        raise OSError(f"OpenCV could not encode a picture of {image_bgr.shape} as {suffix}")
    return data.tobytes()


def write_picture(path: Path, image_bgr: NDArray[np.uint8]) -> None:
    """Write pixels, uint8 (H, W, 3) BGR, atomically as PNG or JPEG, by the suffix; create missing folders."""
    data = encode_picture(image_bgr, path.suffix.lower())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(path, data)
