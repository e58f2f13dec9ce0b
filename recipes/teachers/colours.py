"""Names of colours."""

import colorsys

import numpy as np
from numpy.typing import NDArray

# Hue in degrees below which a saturated colour has the name; empty between two names.
_HUES = ((12, "red"), (46, ""), (66, "yellow"), (80, ""), (165, "green"), (190, ""), (255, "blue"))


def colour_name(pixels_bgr: NDArray[np.uint8]) -> str:
    """Name the median colour of pixels (N, 3) uint8; empty where it lies between names or N is 0."""
    if not len(pixels_bgr):
        return ""
    blue, green, red = np.median(pixels_bgr, axis=0) / 255
    hue, saturation, value = colorsys.rgb_to_hsv(float(red), float(green), float(blue))
    degrees = hue * 360
    if value < 0.22:
        return "black"
    if saturation < 0.16:
        return "white" if value > 0.62 else "gray" if 0.3 < value < 0.55 else ""
    if 12 <= degrees < 45 and saturation > 0.3 and value < 0.72:
        return "brown"
    if saturation < 0.45 or value < 0.25:
        return ""
    for limit, name in _HUES:
        if degrees < limit:
            return name
    return "red" if degrees > 348 else ""
