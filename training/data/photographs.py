"""Reading photographs of a data set."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, read_image
from training.errors import DataError


def read_photograph(path: Path, image: str) -> NDArray[np.uint8]:
    """Read a photograph, (H, W, 3) uint8 BGR.

    Args:
        path: the file.
        image: image id, for the message.

    Raises:
        DataError: the file is missing or not an image; names it, the image id and the reason.
    """
    try:
        return read_image(path)
    except ImageError as error:
        raise DataError(f"{path}, image {image}: {error}") from None
