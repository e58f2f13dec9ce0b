"""Frames for captioners in tests."""

import cv2
import numpy as np


def blobs(seed: int, height: int = 224, width: int = 224) -> np.ndarray:
    """Smooth random colours, (height, width, 3) uint8."""
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
