"""Frames for captioners in tests."""

import cv2
import numpy as np


def blobs(seed, height=224, width=224):
    """Smooth random colours, (height, width, 3) uint8."""
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def synthetic_images(count, size, seed=0):
    """Draw smooth coloured blobs, (count, size, size, 3) uint8: frames as smooth as photographs."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, size=(count, 6, 6, 3), dtype=np.uint8)
    return np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])
