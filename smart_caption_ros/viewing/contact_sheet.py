"""Many pictures on one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import check_image

GAP_PX = 12
SHEET_SIDE_PX = 960
"""Longest side of a picture that a :class:`ContactSheet` keeps."""
MAX_WIDTH_PX = 2560
_BACKGROUND_BGR = (38, 34, 32)


class ContactSheet:
    """A contact sheet that pictures are given to one by one; of many it keeps an even choice, in constant memory."""

    def __init__(self, limit: int, columns: int | None = None) -> None:
        """
        Args:
            limit: the most pictures on it; of more it has at least half as many.
            columns: pictures in a row, as for `contact_sheet`.
        """
        self._limit = limit
        self._columns = columns
        self._step = 1
        self._pictures: dict[int, NDArray[np.uint8]] = {}

    def __len__(self) -> int:
        return len(self._pictures)

    def add(self, index: int, image_bgr: NDArray[np.uint8]) -> None:
        """Take a picture, uint8 HxWx3, or pass over it; `index` counts all of them from 0 and orders the sheet."""
        if index % self._step:
            return
        scale = min(1.0, SHEET_SIDE_PX / max(image_bgr.shape[:2]))
        size = [max(1, round(side * scale)) for side in image_bgr.shape[1::-1]]
        self._pictures[index] = np.asarray(cv2.resize(image_bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
        while len(self._pictures) > self._limit:
            self._step *= 2
            self._pictures = {kept: each for kept, each in self._pictures.items() if kept % self._step == 0}

    def picture(self) -> NDArray[np.uint8]:
        """The sheet, uint8 HxWx3; raises ValueError where it has no picture."""
        return contact_sheet([self._pictures[index] for index in sorted(self._pictures)], self._columns)


def contact_sheet(images_bgr: Sequence[NDArray[np.uint8]], columns: int | None = None) -> NDArray[np.uint8]:
    """Lay pictures out in rows, in their order, each row filling the width.

    The pictures of a row are scaled to one height, whatever their proportions; the last row is no higher
    than the one before it.

    Args:
        images_bgr: uint8 HxWx3 each, of any sizes.
        columns: pictures in a row; None for about as many rows as columns.

    Returns:
        uint8 HxWx3, at most 2560 wide.

    Raises:
        ValueError: for no pictures, for less than one column, and for an array that is not a BGR image.
    """
    if not images_bgr:
        raise ValueError("a contact sheet needs at least one picture")
    if columns is not None and columns < 1:
        raise ValueError(f"a contact sheet needs at least one column, not {columns}")
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
    """One row with a gap above it, and the exact height of its pictures."""
    proportions = [image.shape[1] / image.shape[0] for image in images]
    room = width - GAP_PX * (len(images) + 1)
    exact_height = min(room / sum(proportions), highest)
    height = max(1, round(exact_height))
    row = np.full((GAP_PX + height, width, 3), _BACKGROUND_BGR, np.uint8)
    left: float = GAP_PX
    for image, proportion in zip(images, proportions, strict=True):
        # Rounding the edges and not the widths keeps the right margin where it belongs.
        right = left + exact_height * proportion
        start, stop = round(left), min(max(round(right), round(left) + 1), width)
        shrinks = stop - start < image.shape[1]
        row[GAP_PX:, start:stop] = cv2.resize(
            image, (stop - start, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC
        )
        left = right + GAP_PX
    return row, exact_height
