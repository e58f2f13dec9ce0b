"""Checks and resizing of BGR frames."""

import cv2
import numpy as np


def check_image(image_bgr: np.ndarray) -> None:
    """Raise ValueError unless ``image_bgr`` is an HxWx3 uint8 array with at least one pixel."""
    if not isinstance(image_bgr, np.ndarray):
        raise ValueError(f"a frame must be a numpy array, not {type(image_bgr).__name__}")
    if image_bgr.dtype != np.uint8 or image_bgr.ndim != 3 or image_bgr.shape[2] != 3 or not image_bgr.size:
        raise ValueError(f"a frame must be uint8 HxWx3 (BGR), not {image_bgr.dtype} {image_bgr.shape}")


def squash(image_bgr: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize to ``size`` (width, height), whatever the proportions; see :class:`Vision`."""
    if image_bgr.shape[1::-1] == size:
        return image_bgr
    shrinks = image_bgr.shape[1] >= size[0] and image_bgr.shape[0] >= size[1]
    return cv2.resize(image_bgr, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
