"""Measure cheaply how much an image differs from an earlier one, to caption a scene only when it has changed."""

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging.pixels import resize_image

_WIDTH, _HEIGHT, _TILE = 64, 48, 8


def thumbnail(image_bgr: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Reduce an image, uint8 (H, W, 3), to grey levels, float32 (48, 64), for :func:`change_between`.

    Averaging removes the noise of the camera.
    """
    # Averaging all pixels of a 1080p image takes 30 ms; 16 pixels for each of the thumbnail are enough to remove noise.
    step = max(1, min(image_bgr.shape[0] // (4 * _HEIGHT), image_bgr.shape[1] // (4 * _WIDTH)))
    sampled_bgr = np.ascontiguousarray(image_bgr[::step, ::step])
    small_bgr = resize_image(sampled_bgr, (_WIDTH, _HEIGHT), cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small_bgr, cv2.COLOR_BGR2GRAY), np.float32)


def change_between(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """Return the mean absolute difference of the grey levels in the tile that differs most, 0 to 255.

    The mean of a whole image would hide an object that fills a small part of it. There are 8 x 6 tiles.
    Thumbnails are float32 (48, 64).
    """
    tiles = np.abs(after - before).reshape(_HEIGHT // _TILE, _TILE, _WIDTH // _TILE, _TILE)
    return float(tiles.mean(axis=(1, 3)).max())
