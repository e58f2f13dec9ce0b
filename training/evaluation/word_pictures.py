"""Pictures of what made a captioner say each word, for :mod:`training.explain`."""

from collections.abc import Sequence

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from smart_caption_ros.viewing.contact_sheet import contact_sheet
from smart_caption_ros.viewing.text import font, label, printable, shortened, to_bgr, width_of

_PANEL, _PANEL_LETTERS, _COLUMNS = 260, 18, 5
"""Height of a photograph and of its word in pixels, and photographs in a row."""
_WIDEST = 8 * _PANEL
"""Width in pixels to which a wider photograph is squashed."""
_LEAST_BRIGHTNESS = 0.2
"""Brightness of a region with the lowest attribution."""
_RED_BGR, _WHITE, _BLACK = (0, 0, 255), (255, 255, 255), (0, 0, 0)
_LETTERS, _CHART, _GAP = 20, 160, 12
"""Size of the words of a bar chart, height of its bars and distance between them, in pixels."""


def draw_attributions(
    words: Sequence[str], scores: Tensor, photograph_bgr: NDArray[np.uint8], boxes_xyxy: NDArray[np.float32]
) -> NDArray[np.uint8]:
    """Draw the photograph once for each word, brighter where the word's scores are higher.

    Args:
        scores: (T, N) float, attribution of each word to each region.
        photograph_bgr: (H, W, 3) uint8.
        boxes_xyxy: (N, 4) float32, boxes of the regions as fractions of the photograph; where several cover a pixel,
            the one with the highest score counts.

    Returns:
        (H', W', 3) uint8 BGR.

    Raises:
        ValueError: there is another number of boxes than of scores.
    """
    if scores.shape[1] != len(boxes_xyxy):
        raise ValueError(f"{scores.shape[1]} regions have scores, but {len(boxes_xyxy)} have boxes")
    height, width = photograph_bgr.shape[:2]
    size = (min(max(1, round(width * _PANEL / height)), _WIDEST), _PANEL)
    picture = np.asarray(cv2.resize(photograph_bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
    corners = np.rint(boxes_xyxy * np.tile(size, 2)).astype(int)
    panels = []
    for word, row in zip(words, stretch_contrast(scores).numpy(), strict=True):
        light = np.zeros(picture.shape[:2], np.float32)
        for place in np.argsort(row, kind="stable"):
            left, top, right, bottom = corners[place]
            light[top:bottom, left:right] = row[place]
        panel = np.rint(picture * (_LEAST_BRIGHTNESS + (1 - _LEAST_BRIGHTNESS) * light[..., None])).astype(np.uint8)
        left, top, right, bottom = corners[row.argmax()]
        cv2.rectangle(panel, (left, top), (max(left, right - 1), max(top, bottom - 1)), _RED_BGR, 2)
        panels.append(np.concatenate([panel, _word_plate(word, size[0])]))
    return contact_sheet(panels, min(_COLUMNS, len(panels)))


def _word_plate(word: str, width: int) -> NDArray[np.uint8]:
    """Draw a word on a white plate of a width."""
    text = shortened(printable(word), _PANEL_LETTERS, width - _PANEL_LETTERS)
    plate = label(text, _PANEL_LETTERS, _BLACK, _WHITE)[:, :width]
    return np.asarray(
        cv2.copyMakeBorder(plate, 0, 0, 0, width - plate.shape[1], cv2.BORDER_CONSTANT, value=_WHITE), np.uint8
    )


def draw_shares(words: Sequence[str], shares: Sequence[float], image_bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Draw a bar above each word, beside the photograph.

    Args:
        shares: in [0, 1], one for each word.
        image_bgr: (H, W, 3) uint8.

    Returns:
        (H', W', 3) uint8 BGR.
    """
    texts = [printable(word) for word in words]
    widths = [max(round(width_of(text, _LETTERS)), 2 * _LETTERS) for text in texts]
    height = max(len(image_bgr), _CHART + 4 * _LETTERS)
    chart = Image.new("RGB", (sum(widths) + _GAP * (len(widths) + 1), height), "white")
    pen, left, bottom = ImageDraw.Draw(chart), _GAP, _CHART + 2 * _LETTERS
    for text, share, width in zip(texts, shares, widths, strict=True):
        middle, top = left + width // 2, bottom - round(_CHART * share)
        pen.rectangle((left, top, left + width, bottom), fill=(70, 110, 180))
        pen.text((middle, top - 4), f"{share:.2f}", fill="black", font=font(_LETTERS - 6), anchor="ms")
        pen.text((middle, bottom + _LETTERS + 4), text, fill="black", font=font(_LETTERS), anchor="ms")
        left += width + _GAP
    border = cv2.copyMakeBorder(image_bgr, 0, height - len(image_bgr), 0, 0, cv2.BORDER_CONSTANT, value=_WHITE)
    return np.concatenate([border.astype(np.uint8), to_bgr(chart)], axis=1)


def stretch_contrast(scores: Tensor) -> Tensor:
    """Map the least of each row of (T, N) scores to 0 and the greatest to 1; rows of equal scores become zeros."""
    least, greatest = scores.amin(dim=1, keepdim=True), scores.amax(dim=1, keepdim=True)
    return (scores - least) / (greatest - least).clamp_min(torch.finfo(scores.dtype).tiny)
