"""Anti-aliased text on BGR images, with the font that Pillow carries in itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Rgb = tuple[int, int, int]
Item = TypeVar("Item")

ELLIPSIS = "..."


@lru_cache(maxsize=64)
def font(size_px: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font in a size (decoding it takes milliseconds, so it is kept)."""
    loaded = ImageFont.load_default(size_px)
    if not isinstance(loaded, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType; install the wheel: pip install --upgrade Pillow")
    return loaded


def width_of(text: str, size_px: int) -> float:
    """Width of a line of text in pixels."""
    return font(size_px).getlength(text)


def printable(text: str) -> str:
    """The text in the characters of the font: accents are dropped, other scripts become question marks."""
    plain = unicodedata.normalize("NFKD", " ".join(text.split()))
    return "".join(each if " " <= each <= "~" else "?" for each in plain if not unicodedata.combining(each))


def shortened(text: str, size_px: int, room_px: float) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if width_of(text, size_px) <= room_px:
        return text
    while text and width_of(text + ELLIPSIS, size_px) > room_px:
        text = text[:-1]
    return text + ELLIPSIS


def wrapped(items: Sequence[Item], width: Callable[[Item], float], gap_px: float, room_px: float) -> list[list[Item]]:
    """Break items into lines no wider than `room_px`; an item wider than that has a line of its own."""
    lines: list[list[Item]] = []
    used = 0.0
    for item in items:
        needed = width(item)
        if lines and used + gap_px + needed <= room_px:
            lines[-1].append(item)
            used += gap_px + needed
        else:
            lines.append([item])
            used = needed
    return lines


def sharpening(size_px: int) -> int:
    """How many times larger to set letters of a size before they are scaled down to it."""
    return 2 if size_px <= 40 else 1


def label(text: str, size_px: int, colour: Rgb, background: Rgb) -> NDArray[np.uint8]:
    """A small filled plate with text on it, uint8 HxWx3 BGR."""
    scale = sharpening(size_px)
    size = size_px * scale
    padding = max(2 * scale, round(0.3 * size))
    width = round(width_of(text, size)) + 2 * padding
    height = round(1.3 * size) + 2 * scale
    plate = Image.new("RGB", (width + -width % scale, height + -height % scale), background)
    ImageDraw.Draw(plate).text(
        (padding, round(0.5 * height + 0.33 * size)), text, fill=colour, font=font(size), anchor="ls"
    )
    return to_bgr(plate, scale)


def to_bgr(image: Image.Image, scale: int = 1) -> NDArray[np.uint8]:
    """Pixels of an RGB image in BGR order, scaled down by a whole number."""
    pixels = np.ascontiguousarray(np.asarray(image, np.uint8)[..., ::-1])
    if scale == 1:
        return pixels
    size = (image.width // scale, image.height // scale)
    smaller: NDArray[np.uint8] = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    return smaller
