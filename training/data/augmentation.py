"""Random views of photographs for end-to-end training."""

import cv2
import numpy as np


def random_view(image_bgr: np.ndarray, flip: bool, smallest_share: float, random: np.random.Generator) -> np.ndarray:
    """Crop a photograph at a random place and resize the crop to the photograph's size.

    Args:
        image_bgr: (H, W, 3) uint8.
        flip: whether to mirror the crop.
        smallest_share: lower bound of the share of each side that the crop keeps; 1 keeps the whole photograph.
        random: generator of this image.

    Returns:
        (H, W, 3) uint8.
    """
    height, width = image_bgr.shape[:2]
    if smallest_share < 1:
        share = random.uniform(smallest_share, 1.0, size=2)
        rows, columns = round(height * share[0]), round(width * share[1])
        top, left = int(random.integers(0, height - rows + 1)), int(random.integers(0, width - columns + 1))
        cropped = image_bgr[top : top + rows, left : left + columns]
        image_bgr = cv2.resize(cropped, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(image_bgr[:, ::-1]) if flip else image_bgr
