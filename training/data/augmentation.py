"""Random views of photographs for end-to-end training."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import box_areas, clip_boxes


class View(NamedTuple):
    """A crop of a photograph in fractions of its width and height, and whether it is mirrored."""

    left: float
    top: float
    right: float
    bottom: float
    flip: bool

    def transform_boxes(self, boxes_xyxy: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Transform boxes of the photograph to boxes of the view.

        Args:
            boxes_xyxy: (N, 4), fractions of the photograph.

        Returns:
            (N, 4) float32, fractions of the view, clipped to it; and (N,) float32, the share of each box's area that
            is inside the view.
        """
        origin = np.array([self.left, self.top] * 2, np.float32)
        size = np.array([self.right - self.left, self.bottom - self.top] * 2, np.float32)
        whole = (boxes_xyxy - origin) / size
        if self.flip:
            whole[:, [0, 2]] = 1 - whole[:, [2, 0]]
        clipped = clip_boxes(whole, 1, 1)
        return clipped, (box_areas(clipped) / np.maximum(box_areas(whole), 1e-9)).astype(np.float32)


def random_view(
    image_bgr: np.ndarray, flip: bool, smallest_share: float, random: np.random.Generator
) -> tuple[np.ndarray, View]:
    """Crop a photograph at a random place and resize the crop to the photograph's size.

    Args:
        image_bgr: (H, W, 3) uint8.
        flip: whether to mirror the crop.
        smallest_share: lower bound of the share of each side that the crop keeps; 1 keeps the whole photograph.
        random: generator of this image.

    Returns:
        The crop, (H, W, 3) uint8, and its place in the photograph.
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


def image_generators(random: np.random.Generator, images: np.ndarray) -> list[np.random.Generator]:
    """Make a generator for each image that depends on the image and on the seed of ``random`` alone.

    Args:
        random: generator of the batch.
        images: (B,) integers.
    """
    seed = random.bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
    return [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(image),))) for image in images]
