"""Image files and encoded images in memory (JPEG, PNG and the other formats of OpenCV) -> pixels."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from smart_caption_ros.imaging.errors import ImageError
from smart_caption_ros.imaging.pixels import scaled_to_8_bits

# The log level is set by functions of cv2 in OpenCV 4.5 and 4.6 (Ubuntu), and of a submodule in later versions.
_opencv_log: Any = getattr(cv2.utils, "logging", cv2)
_OPENCV_SILENT = 0
_EXIF_ORIENTATION = 0x0112  # PIL.ExifTags.Base.Orientation, since Pillow 9.4
_PNG_STAYS_UNROTATED = tuple(map(int, cv2.__version__.split(".")[:2])) < (4, 6)  # OpenCV reads no EXIF in PNG files

MAX_PIXELS = 50_000_000
"""Default limit of decoded images. A PNG of a few megabytes can hold 900 million pixels, 2.7 GB."""
HIGHEST_MAX_PIXELS = 178_000_000
"""Highest limit that callers may choose: Pillow refuses to open larger images."""

_NOT_AN_IMAGE = "it is damaged or not an image in a format that OpenCV and Pillow read"

# Pillow warns of images that are larger than half of what it refuses; the limit here is the caller's.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


def read_image(path: Path) -> NDArray[np.uint8]:
    """Read an image file to uint8 HxWx3 BGR, by the rules of :func:`decode_image_bytes`.

    Raises:
        ImageError: the file is missing, unreadable, truncated or not an image; one clause without the path.
    """
    try:
        return decode_image_bytes(path.read_bytes())
    except OSError as error:
        raise ImageError(error.strerror or str(error)) from error


def decode_image_bytes(data: bytes | NDArray[np.uint8], *, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Decode the bytes of an image file to uint8 HxWx3 BGR.

    Grey becomes three equal channels, transparency is dropped, 16-bit values are scaled by
    :func:`smart_caption_ros.imaging.pixels.scaled_to_8_bits`, and the orientation stored by a camera (EXIF) is applied.

    Args:
        data: the bytes.
        max_pixels: images that are larger by their header are not decoded; at most :data:`HIGHEST_MAX_PIXELS`.

    Raises:
        ImageError: one clause that says what is wrong with the bytes.
    """
    raw = bytes(data)
    if not raw:
        raise ImageError("it is empty")
    if _is_truncated_jpeg(raw):
        # libjpeg would fill the missing part with grey and report success.
        raise ImageError(f"the JPEG data is truncated ({len(raw)} bytes)")
    _check_pixels(raw, max_pixels)
    with quiet_opencv():
        try:
            image = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
            if image is not None and image.dtype not in (np.uint8, np.uint16):
                image = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)  # of floats: OpenCV converts them
        except cv2.error as error:
            raise ImageError(f"OpenCV refuses it ({' '.join(str(error.err).split())})") from error
    if image is None:
        raise ImageError(_NOT_AN_IMAGE)
    return scaled_to_8_bits(image)


def read_image_size(path: Path) -> tuple[int, int]:
    """Read width and height, as :func:`read_image` would give them, from the header of an image file.

    Raises:
        ImageError: the file is missing or not an image; one clause without the path.
    """
    try:
        with Image.open(path) as image:
            # getexif() decodes the whole PNG if there is no EXIF chunk before the pixels.
            exif = image.getexif() if image.format != "PNG" or "exif" in image.info else {}
            if image.format == "PNG" and _PNG_STAYS_UNROTATED:
                exif = {}
            rotated = exif.get(_EXIF_ORIENTATION) in (5, 6, 7, 8)
            return image.size[::-1] if rotated else image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged or not an image"
        raise ImageError(reason) from error


def _check_pixels(raw: bytes, max_pixels: int) -> None:
    """Check the size in the header of an encoded image, before memory is allocated for its pixels.

    Raises:
        ImageError: it has more than ``max_pixels`` pixels, or a header that Pillow cannot read.
    """
    limit = f"more than the limit of {max_pixels / 1e6:g} megapixels"
    try:
        with Image.open(io.BytesIO(raw)) as image:  # reads the header alone
            width, height = image.size
    except Image.DecompressionBombError:
        raise ImageError(f"it has {limit}") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError(_NOT_AN_IMAGE) from error
    if width * height > max_pixels:
        raise ImageError(f"it has {width}x{height} pixels, {limit}")


def _is_truncated_jpeg(raw: bytes) -> bool:
    """Whether the bytes are a JPEG whose last scan has no end marker.

    Marker bytes cannot occur inside the entropy-coded data of a scan, so the last start of a scan (FFDA)
    must be followed by an end of image (FFD9). Some cameras append bytes after it.
    """
    return raw.startswith(b"\xff\xd8") and raw.rfind(b"\xff\xd9") < max(raw.rfind(b"\xff\xda"), 2)


@contextmanager
def opencv_path(path: Path) -> Iterator[str]:
    """Yield a path under which OpenCV and FFmpeg open a file.

    It is absolute, because FFmpeg takes what is before the colon of "run:1.avi" for a protocol. OpenCV ends the process
    at a name that is not UTF-8: such a file is opened by its descriptor.

    Raises:
        OSError: a file with such a name cannot be opened.
    """
    try:
        name = str(path.absolute())
        name.encode()
        yield name
    except UnicodeEncodeError:
        with path.open("rb") as file:
            yield f"/proc/self/fd/{file.fileno()}"


@contextmanager
def quiet_opencv() -> Iterator[None]:
    """Suppress OpenCV's log lines; the caller reports a failure in one sentence."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # AV_LOG_QUIET; read when FFmpeg is first used
    previous = _opencv_log.getLogLevel()
    _opencv_log.setLogLevel(_OPENCV_SILENT)
    try:
        yield
    finally:
        _opencv_log.setLogLevel(previous)
