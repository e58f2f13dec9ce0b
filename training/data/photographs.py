"""Photographs of a data set as files."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, read_image
from training.errors import DataError


def read_photograph(path: Path, image: str) -> NDArray[np.uint8]:
    """Read the photograph of an image id, (H, W, 3) uint8 BGR.

    Raises:
        DataError: the file is missing or not an image; names it, the image id and the reason.
    """
    try:
        return read_image(path)
    except ImageError as error:
        raise DataError(f"{path}, image {image}: {error}") from None
