"""Draw boxes on a picture: a frame for each object and each coloured word, and labels that overlap little."""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.boxes import DetectedObject
from smart_caption_ros.viewing.colours import DARK, UNNAMED_OBJECT, WHITE, Rgb, clip
from smart_caption_ros.viewing.styled_words import StyledWord
from smart_caption_ros.viewing.text import label, printable, shortened

Corners = tuple[int, int, int, int]
"""Left, top, right, bottom in whole pixels; right and bottom are exclusive."""


Label = tuple[Corners, NDArray[np.uint8]]
"""The box that a label belongs to, and the pixels of the label, uint8 (h, w, 3) BGR."""


def draw_boxes(
    picture: NDArray[np.uint8],
    words: Sequence[StyledWord],
    objects: Sequence[DetectedObject],
    colours: dict[str, Rgb] | None,
    text_size: int,
) -> None:
    """Draw the objects and the regions of the words on a picture, in place.

    Args:
        picture: uint8 (H, W, 3) BGR; modified.
        objects: all of them are drawn, with their scores unless these are NaN.
        colours: colour of each class that the caption names; None if the named classes are unknown.
        text_size: letter height of the caption in pixels; the labels are about half as high.
    """
    height, width = picture.shape[:2]
    size = round(clip(0.55 * text_size, 11, 60))
    thickness = max(1, round(0.0032 * min(width, 2 * height)))
    labels, optional_labels = _draw_objects(picture, objects, colours, size, thickness)
    labels += _draw_words(picture, words, size, thickness)
    taken: list[Corners] = []
    for corners, plate in labels:
        _place(picture, corners, plate, taken)
    for corners, plate in optional_labels:
        _place(picture, corners, plate, taken, only_where_free=True)


def _draw_objects(
    picture: NDArray[np.uint8],
    objects: Sequence[DetectedObject],
    colours: dict[str, Rgb] | None,
    size: int,
    thickness: int,
) -> tuple[list[Label], list[Label]]:
    """Draw the frames of the objects; return the labels of named objects and the labels of the others."""
    height, width = picture.shape[:2]
    named = colours or {}
    labels: list[Label] = []
    optional_labels: list[Label] = []
    # Later frames are on top: named objects over the others, high scores over low ones.
    for item in sorted(objects, key=lambda item: (item.class_name in named, np.nan_to_num(item.score))):
        corners = _pixels(item.box_xyxy, width, height)
        if corners is None:
            continue
        score = "" if math.isnan(item.score) else f" {item.score:.2f}"
        text = shortened(printable(item.class_name) + score, size, width)
        if item.class_name in named:
            _frame(picture, corners, named[item.class_name], thickness)
            labels.insert(0, (corners, label(text, size, DARK, named[item.class_name])))
        else:
            colour = WHITE if colours is None else UNNAMED_OBJECT
            _frame(picture, corners, colour, max(1, thickness - 1))
            optional_labels.insert(0, (corners, label(text, size, colour, DARK)))
    return labels, optional_labels


def _draw_words(picture: NDArray[np.uint8], words: Sequence[StyledWord], size: int, thickness: int) -> list[Label]:
    """Draw the regions of the words; words that share a region get nested frames."""
    height, width = picture.shape[:2]
    labels: list[Label] = []
    nested: dict[Corners, int] = {}
    for word in words:
        corners = _pixels(word.box_xyxy, width, height) if word.box_xyxy is not None else None
        if corners is None:
            continue
        inset = nested.get(corners, 0) * (thickness + 2)
        nested[corners] = nested.get(corners, 0) + 1
        left, top, right, bottom = corners
        if right - left > 2 * inset + 4 and bottom - top > 2 * inset + 4:
            _frame(picture, (left + inset, top + inset, right - inset, bottom - inset), word.colour, thickness)
        labels.append((corners, label(shortened(word.text, size, width), size, DARK, word.colour)))
    return labels


def _pixels(box_xyxy: Sequence[float], width: int, height: int) -> Corners | None:
    """Round a box to whole pixels inside the picture; None if it is smaller than 2x2 pixels or not finite."""
    if len(box_xyxy) != 4 or not all(math.isfinite(value) for value in box_xyxy):
        return None
    left, right = (round(clip(value, 0, width)) for value in box_xyxy[0::2])
    top, bottom = (round(clip(value, 0, height)) for value in box_xyxy[1::2])
    return (left, top, right, bottom) if right - left >= 2 and bottom - top >= 2 else None


def _frame(picture: NDArray[np.uint8], corners: Corners, colour: Rgb, thickness: int) -> None:
    """Draw a frame inside the box; its dark outline keeps it visible on any background."""
    left, top, right, bottom = corners
    for inset, shade, width in ((0, DARK, thickness + 2), (1, colour, thickness)):
        for edge in range(width):
            at = inset + edge
            if right - at - 1 >= left + at and bottom - at - 1 >= top + at:
                cv2.rectangle(picture, (left + at, top + at), (right - at - 1, bottom - at - 1), shade[::-1])


def _place(
    picture: NDArray[np.uint8],
    corners: Corners,
    plate: NDArray[np.uint8],
    taken: list[Corners],
    only_where_free: bool = False,
) -> None:
    """Draw a label where it overlaps no other label: above the box, else below, inside, or one label further away.

    If all of these places are taken, the label is drawn at the first of them.

    Args:
        taken: places of the labels drawn so far; the place of this one is appended.
        only_where_free: do not draw the label if all places are taken.
    """
    height, width = picture.shape[:2]
    plate = plate[:height, :width]
    tall, wide = plate.shape[:2]
    left, top, right, bottom = corners
    candidates = [(left, top - tall), (left, bottom), (right - wide, top - tall), (right - wide, bottom)]
    candidates += [(left, top), (left, bottom - tall), (left, top - 2 * tall), (left, bottom + tall)]
    spots = [(round(clip(x, 0, width - wide)), y) for x, y in candidates if 0 <= y <= height - tall] or [
        (round(clip(left, 0, width - wide)), round(clip(top, 0, height - tall)))
    ]
    areas = [(x, y, x + wide, y + tall) for x, y in spots]
    area = next((area for area in areas if not any(_overlap(area, other) for other in taken)), None)
    if area is None and only_where_free:
        return
    x1, y1, x2, y2 = area or areas[0]
    picture[y1:y2, x1:x2] = plate
    taken.append((x1, y1, x2, y2))


def _overlap(one: Corners, other: Corners) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
