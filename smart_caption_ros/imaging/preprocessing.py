"""Preprocessing of frames for a vision graph: size, interpolation and crop, the same in training and on the robot.

``area`` is OpenCV's, several times faster than the others on a CPU. ``bilinear``, ``bicubic`` and ``lanczos`` are
Pillow's, with antialiasing, as the image processors of published models compute them.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from smart_caption_ros.imaging.pixels import resize_image

AREA = "area"
"""Area average where the frame shrinks, linear where it grows."""
_FILTERS = {"lanczos": 1, "bilinear": 2, "bicubic": 3}  # their numbers in Pillow, whose names for them have changed
INTERPOLATIONS = (AREA, *_FILTERS)
_LONGEST_RATIO = 20
"""Ratio of the sides above which the ends of a frame are cut off before it is resized for a crop."""


@dataclass(frozen=True)
class Preprocessing:
    """Size of a vision graph's input, pixels, and how frames are resized to it."""

    width: int
    height: int
    interpolation: str = AREA
    """One of :data:`INTERPOLATIONS`."""
    shorter_side: int | None = None
    """Pixels of the shorter side of the frame, which is resized with its aspect ratio and cropped to its centre; at
    least the larger of width and height. None: the whole frame is resized to width x height."""
    longer_side_first: int | None = None
    """Pixels of the longer side of the frame, to which it is resized with its aspect ratio before it is resized to
    width x height, as for SmolVLM. None: no such step."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"width and height must be positive, not {self.width} and {self.height}")
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(f"interpolation must be one of {', '.join(INTERPOLATIONS)}, not {self.interpolation!r}")
        if self.shorter_side is not None and self.shorter_side < max(self.width, self.height):
            raise ValueError(
                f"shorter_side must be at least {max(self.width, self.height)}, the longer side of the input, not "
                f"{self.shorter_side}"
            )

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the input, pixels."""
        return self.width, self.height

    def resized(self, width: int, height: int) -> "Preprocessing":
        """Return the preprocessing for an input of another size; a crop keeps its share of the frame."""
        shorter = self.shorter_side
        if shorter is not None:
            shorter = math.ceil(shorter * max(width, height) / max(self.size))
        return replace(self, width=width, height=height, shorter_side=shorter)

    def apply(self, image_bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize and crop a frame, (H, W, 3) uint8, to (height, width, 3)."""
        if self.longer_side_first is not None:
            image_bgr = self._resize(image_bgr, self._first_size(*image_bgr.shape[1::-1]))
        if self.shorter_side is None:
            return self._resize(image_bgr, self.size)
        image_bgr = _without_ends(image_bgr)
        size, left, top = self._placed(image_bgr.shape[1], image_bgr.shape[0])
        return self._resize(image_bgr, size)[top : top + self.height, left : left + self.width]

    def region(self, width: int, height: int) -> NDArray[np.float32]:
        """Return the part of a frame of width x height that the input shows, (4,) float32 xyxy pixels."""
        if self.shorter_side is None:
            return np.array([0, 0, width, height], np.float32)
        size, left, top = self._placed(width, height)
        scale = np.array([width / size[0], height / size[1]] * 2)
        edges = np.array([left, top, left + self.width, top + self.height])
        region: NDArray[np.float32] = (edges * scale).astype(np.float32)
        return region

    def _placed(self, width: int, height: int) -> tuple[tuple[int, int], int, int]:
        """Return the size to which a frame is resized, and the left and top edge of the crop in it."""
        assert self.shorter_side is not None
        shorter = min(width, height)
        # Whole-number division as in the published processors, so that the crop is theirs to the pixel.
        size = width * self.shorter_side // shorter, height * self.shorter_side // shorter
        return size, (size[0] - self.width) // 2, (size[1] - self.height) // 2

    def _first_size(self, width: int, height: int) -> tuple[int, int]:
        """Return the size of a frame whose longer side has ``longer_side_first`` pixels, the other an even number."""
        longer, ratio = self.longer_side_first or 0, width / height
        other = max(1, int(longer / ratio if ratio >= 1 else longer * ratio))
        other += other % 2
        return (longer, other) if ratio >= 1 else (other, longer)

    def _resize(self, image_bgr: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
        if self.interpolation == AREA or image_bgr.shape[1::-1] == size:
            return resize_image(image_bgr, size)
        resized = Image.fromarray(image_bgr).resize(size, _FILTERS[self.interpolation])
        return np.array(resized, np.uint8)  # the channels are computed apart, so their order does not matter


def _without_ends(image_bgr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut a very long frame to its middle: the crop shows nothing else of it, and resized whole, with its aspect ratio,
    it could fill the memory (1 x 50,000 pixels: 7.5 GB for a shorter side of 224)."""
    height, width = image_bgr.shape[:2]
    longest = _LONGEST_RATIO * min(height, width)
    top, left = max(0, height - longest) // 2, max(0, width - longest) // 2
    return image_bgr[top : height - top, left : width - left]
