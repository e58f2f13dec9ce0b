"""Photographs as files."""

from pathlib import Path

import cv2
import numpy as np

from training.errors import DataError


def read_photograph(path: Path, image: str) -> np.ndarray:
    """(H, W, 3) uint8 BGR.

    Raises:
        DataError: the file is missing or no image; names it, the image id and the reason.
    """
    try:
        encoded = np.frombuffer(path.read_bytes(), np.uint8)
    except FileNotFoundError:
        raise DataError(f"{path}, image {image}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}, image {image}: {error.strerror}") from None
    try:
        found = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
    except cv2.error:  # a header that promises more pixels than OpenCV takes
        found = None
    if found is None:
        raise DataError(f"{path}, image {image}: not an image")
    return found
