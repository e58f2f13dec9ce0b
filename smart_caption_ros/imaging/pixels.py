"""Check, scale and resize pixels."""

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray


def check_image(image_bgr: Any) -> None:
    """Raise ValueError unless ``image_bgr`` is a uint8 HxWx3 array with at least one pixel."""
    if not isinstance(image_bgr, np.ndarray):
        raise ValueError(f"a frame must be a numpy array, not {type(image_bgr).__name__}")
    if image_bgr.dtype != np.uint8 or image_bgr.ndim != 3 or image_bgr.shape[2] != 3 or not image_bgr.size:
        raise ValueError(f"a frame must be uint8 HxWx3 (BGR), not {image_bgr.dtype} {image_bgr.shape}")


def scaled_to_8_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Scale pixels of more bits to 8 bits; 8-bit pixels are returned unchanged.

    The pixels are taken to have the smallest of 8, 10, 12, 14, 16 and more bits that holds the brightest one: what a
    camera publishes does not say how many of the 16 bits it uses. A dark image of a camera with more bits becomes
    brighter.

    Args:
        pixels: whole numbers from 0 on, of any shape and byte order.
    """
    if pixels.dtype.itemsize == 1:
        return pixels
    brightest = int(pixels.max(initial=0))
    bits = next(bits for bits in (8, 10, 12, 14, *range(16, 65)) if brightest < 1 << bits)
    return (pixels >> (bits - 8)).astype(np.uint8)


def resize_image(
    image_bgr: NDArray[np.uint8], size: tuple[int, int], interpolation: int | None = None
) -> NDArray[np.uint8]:
    """Resize an image to ``size`` (width, height) without keeping its aspect ratio.

    Args:
        image_bgr: uint8 (H, W, 3); returned unchanged if it has the size already.
        size: width and height of the result.
        interpolation: flag of :func:`cv2.resize`; None takes INTER_AREA where both sides shrink, else INTER_LINEAR.
    """
    height, width = image_bgr.shape[:2]
    if (width, height) == size:
        return image_bgr
    if (width, height) == (1, 1):  # OpenCV 4.5 (Ubuntu 22.04) refuses to enlarge one pixel
        return np.tile(image_bgr, (size[1], size[0], 1))
    if interpolation is None:
        interpolation = cv2.INTER_AREA if width >= size[0] and height >= size[1] else cv2.INTER_LINEAR
    return cv2.resize(image_bgr, size, interpolation=interpolation).astype(np.uint8, copy=False)


def shrink_image(image_bgr: NDArray[np.uint8], longest_side_px: int) -> NDArray[np.uint8]:
    """Scale an image down so that its longer side has at most ``longest_side_px`` pixels; keep its aspect ratio."""
    height, width = image_bgr.shape[:2]
    scale = min(1.0, longest_side_px / max(height, width))
    return resize_image(image_bgr, (max(1, round(width * scale)), max(1, round(height * scale))))
