"""Random views of a photograph for end-to-end training."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray


class View(NamedTuple):
    """A part of a photograph, in fractions of its width and height, mirrored or not."""

    left: float
    top: float
    right: float
    bottom: float
    flip: bool

    def of_boxes(self, boxes_xyxy: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Boxes of the photograph as they lie in the view.

        Args:
            boxes_xyxy: (N, 4), fractions of the photograph.

        Returns:
            (N, 4), fractions of the view, cut at its edges; and (N,), which share of each box's area is in the view.
        """
        origin = np.array([self.left, self.top] * 2, np.float32)
        size = np.array([self.right - self.left, self.bottom - self.top] * 2, np.float32)
        whole = (boxes_xyxy - origin) / size
        if self.flip:
            whole[:, [0, 2]] = 1 - whole[:, [2, 0]]
        cut = whole.clip(0, 1)
        return cut, (_areas(cut) / np.maximum(_areas(whole), 1e-9)).astype(np.float32)


def random_view(
    image_bgr: np.ndarray, flip: bool, smallest_share: float, random: np.random.Generator
) -> tuple[np.ndarray, View]:
    """Crop ``smallest_share`` .. 1 of each side at a random place, squash back to size, mirror if ``flip``.

    Args:
        image_bgr: (H, W, 3) uint8.

    Returns:
        (H, W, 3) uint8, and which part of the photograph that is.
    """
    height, width = image_bgr.shape[:2]
    top, left, rows, columns = 0, 0, height, width
    if smallest_share < 1:
        share = random.uniform(smallest_share, 1.0, size=2)
        rows, columns = round(height * share[0]), round(width * share[1])
        top, left = int(random.integers(0, height - rows + 1)), int(random.integers(0, width - columns + 1))
        cropped = image_bgr[top : top + rows, left : left + columns]
        image_bgr = cv2.resize(cropped, (width, height), interpolation=cv2.INTER_LINEAR)
    view = View(left / width, top / height, (left + columns) / width, (top + rows) / height, flip)
    return np.ascontiguousarray(image_bgr[:, ::-1]) if flip else image_bgr, view


def _areas(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
