"""Contact sheets: pictures laid out in rows on one picture."""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import check_image, shrink_image

GAP_PX = 12
SHEET_SIDE_PX = 960
"""Longest side of a picture that a :class:`ContactSheet` keeps."""
MAX_WIDTH_PX = 2560
_BACKGROUND_BGR = (38, 34, 32)


class ContactSheet:
    """Collects pictures one by one for a contact sheet.

    If there are more pictures than fit, it keeps an evenly spaced selection of them, in constant memory.
    """

    def __init__(self, limit: int, columns: int | None = None) -> None:
        """Create an empty sheet.

        Args:
            limit: maximum number of pictures on the sheet; if there are more, at least half this number is selected.
            columns: pictures in a row; None for about as many rows as columns.
        """
        self._limit = limit
        self._columns = columns
        self._step = 1
        self._pictures: dict[int, NDArray[np.uint8]] = {}

    def __len__(self) -> int:
        return len(self._pictures)

    def add(self, index: int, image_bgr: NDArray[np.uint8]) -> None:
        """Add a picture, uint8 (H, W, 3) BGR, or skip it if it is not part of the selection.

        Args:
            index: position of the picture among all pictures and on the sheet, from 0.
        """
        if index % self._step:
            return
        self._pictures[index] = shrink_image(image_bgr, SHEET_SIDE_PX)
        while len(self._pictures) > self._limit:
            self._step *= 2
            self._pictures = {place: picture for place, picture in self._pictures.items() if place % self._step == 0}

    def picture(self) -> NDArray[np.uint8]:
        """Lay out the sheet, uint8 (H, W, 3) BGR; raises ValueError without a picture."""
        return contact_sheet([self._pictures[index] for index in sorted(self._pictures)], self._columns)


def contact_sheet(images_bgr: Sequence[NDArray[np.uint8]], columns: int | None = None) -> NDArray[np.uint8]:
    """Lay pictures out in rows, in their order, so that each row fills the width.

    The pictures of a row are scaled to one height and keep their aspect ratios; the last row is no higher than the
    one before it.

    Args:
        images_bgr: uint8 (H, W, 3) BGR each, of any sizes.
        columns: pictures in a row, at least 1; None for about as many rows as columns.

    Returns:
        uint8 (H, W, 3) BGR, at most 2560 pixels wide.

    Raises:
        ValueError: there are no pictures, or an array is not a BGR image.
    """
    if not images_bgr:
        raise ValueError("a contact sheet needs at least one picture")
    for image in images_bgr:
        check_image(image)
    columns = min(columns or math.ceil(math.sqrt(len(images_bgr))), len(images_bgr))
    typical_width = sorted(image.shape[1] for image in images_bgr)[len(images_bgr) // 2]
    width = min(columns * (typical_width + GAP_PX) + GAP_PX, MAX_WIDTH_PX)

    rows: list[NDArray[np.uint8]] = []
    last_height = math.inf
    for start in range(0, len(images_bgr), columns):
        row, last_height = _row(images_bgr[start : start + columns], width, last_height)
        rows.append(row)
    bottom = np.full((GAP_PX, width, 3), _BACKGROUND_BGR, np.uint8)
    return np.concatenate([*rows, bottom])


def _row(images: Sequence[NDArray[np.uint8]], width: int, highest: float) -> tuple[NDArray[np.uint8], float]:
    """Draw one row with a gap above it; return it with the unrounded height of its pictures."""
    aspects = [image.shape[1] / image.shape[0] for image in images]
    room = width - GAP_PX * (len(images) + 1)
    exact_height = min(room / sum(aspects), highest)
    height = max(1, round(exact_height))
    row = np.full((GAP_PX + height, width, 3), _BACKGROUND_BGR, np.uint8)
    left: float = GAP_PX
    for image, aspect in zip(images, aspects, strict=True):
        # Edges are rounded instead of widths, whose rounding errors would add up at the right margin.
        right = left + exact_height * aspect
        start, stop = round(left), min(max(round(right), round(left) + 1), width)
        shrinks = stop - start < image.shape[1]
        row[GAP_PX:, start:stop] = cv2.resize(
            image, (stop - start, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
        )
        left = right + GAP_PX
    return row, exact_height
