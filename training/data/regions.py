"""Regions of an image with their features, boxes and image size, and the checks on them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from training.errors import DataError

Size = tuple[int, int]
"""Width and height of an image, pixels."""


@dataclass(frozen=True)
class Regions:
    """Regions of an image, in file order."""

    features: NDArray[np.float32]
    """(n, width)."""
    boxes_xyxy: NDArray[np.float32] | None = None
    """(n, 4), fractions of the image's width and height; None where the file has no boxes, or has them in pixels
    without the image's size."""
    image_size: Size | None = None
    """Width and height of the image, pixels; None where the file does not give it."""


class RegionFeatures(Protocol):
    """Features by image id."""

    width: int
    """Width of a feature."""

    def __contains__(self, image: str) -> bool: ...

    def images(self) -> list[str]:
        """List the image ids, in file order."""
        ...

    def read(self, image: str) -> Regions:
        """Read the regions of an image.

        Raises:
            DataError: the image is missing, or its features are malformed; names the file, the id and the reason.
        """
        ...


def checked_regions(
    where: str,
    width: int,
    features: Any,
    boxes: Any,
    image_size: tuple[Any, Any] | None = None,
) -> Regions:
    """Check the arrays of an image and make :class:`Regions` of them.

    Args:
        where: file and image id, the beginning of the message.
        width: expected width of a feature.
        features: (n, width) array.
        boxes: (n, 4) array, or None. Pixels where ``image_size`` is given. Where it is not, boxes that lie between
            0 and 1 are fractions, and others are dropped.
        image_size: width and height of the image in pixels, or None.

    Raises:
        DataError: no features, other shapes, or numbers that are not finite.
    """
    if features is None:
        raise DataError(f"{where}: it has no features")
    features = _finite(where, "features", features)
    if features.ndim != 2 or not len(features):
        raise DataError(f"{where}: features have the shape {features.shape} instead of (regions, {width})")
    if features.shape[1] != width:
        raise DataError(f"{where}: features are {features.shape[1]} wide instead of {width}")
    size = None if image_size is None else _checked_size(where, image_size)
    if boxes is not None:
        boxes = _finite(where, "boxes", boxes)
        if boxes.shape != (len(features), 4):
            raise DataError(f"{where}: boxes have the shape {boxes.shape} instead of ({len(features)}, 4)")
        if size is not None:
            boxes = boxes / np.array(size * 2, np.float32)
        elif boxes.min() < 0 or boxes.max() > 1:
            boxes = None
    return Regions(features, boxes, size)


def _checked_size(where: str, image_size: tuple[Any, Any]) -> Size:
    try:
        width, height = (int(side) for side in image_size)
    except (TypeError, ValueError, OverflowError):
        width = height = 0
    if width < 1 or height < 1:
        found = " x ".join(
            side.decode(errors="replace") if isinstance(side, bytes) else str(side) for side in image_size
        )
        raise DataError(f"{where}: the size of the image is {found!r}")
    return width, height


def _finite(where: str, name: str, values: np.ndarray) -> NDArray[np.float32]:
    try:
        numbers = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(f"{where}: {name} are no numbers") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{where}: {name} contain NaN or infinity")
    return numbers
