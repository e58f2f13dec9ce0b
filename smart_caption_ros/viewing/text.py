"""Anti-aliased text on BGR images, in the font in this package.

The font is the part of Aileron Regular (Sora Sagano, CC0) that Pillow includes since 10.1; Ubuntu 22.04 has Pillow 9.0.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from smart_caption_ros.viewing.colours import Rgb

Item = TypeVar("Item")

ELLIPSIS = "..."


@lru_cache(maxsize=64)
def font(size_px: int) -> ImageFont.FreeTypeFont:
    """Load the font in a size; cached, because reading the file takes time."""
    return ImageFont.truetype(str(Path(__file__).with_name("data") / "aileron.ttf"), size_px)


def width_of(text: str, size_px: int) -> float:
    """Return the width of a line of text in pixels."""
    return font(size_px).getlength(text)


def printable(text: str) -> str:
    """Convert text to the characters of the font: drop accents, and replace other characters by question marks."""
    plain = unicodedata.normalize("NFKD", " ".join(text.split()))
    return "".join(letter if " " <= letter <= "~" else "?" for letter in plain if not unicodedata.combining(letter))


def shortened(text: str, size_px: int, room_px: float) -> str:
    """Return the text, or if it is wider than `room_px`, the part of its beginning that fits with an ellipsis."""
    text = text[: max(0, int(room_px)) + 1]  # no letter is narrower than a pixel, and texts may be very long
    if width_of(text, size_px) <= room_px:
        return text
    fitting = bisect_right(range(len(text)), room_px, key=lambda length: width_of(text[:length] + ELLIPSIS, size_px))
    return text[: max(0, fitting - 1)] + ELLIPSIS


def wrapped(items: Sequence[Item], width: Callable[[Item], float], gap_px: float, room_px: float) -> list[list[Item]]:
    """Break items into lines no wider than `room_px`; an item wider than that gets a line of its own."""
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


def supersampling(size_px: int) -> int:
    """Return the factor by which letters are drawn larger than `size_px` before they are scaled down."""
    return 2 if size_px <= 40 else 1


def label(text: str, size_px: int, colour: Rgb, background: Rgb) -> NDArray[np.uint8]:
    """Draw text on a small filled rectangle, uint8 (h, w, 3) BGR."""
    scale = supersampling(size_px)
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
    """Convert an RGB image to BGR pixels, uint8 (h, w, 3), and scale it down by a whole number."""
    pixels = np.ascontiguousarray(np.asarray(image, np.uint8)[..., ::-1])
    if scale == 1:
        return pixels
    size = (image.width // scale, image.height // scale)
    smaller: NDArray[np.uint8] = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    return smaller
