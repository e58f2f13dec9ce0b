"""Image files and encoded images in memory (JPEG, PNG and the other formats of OpenCV) -> pixels."""

import io
import logging
import os
import re
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, TiffImagePlugin

from smart_caption_ros.imaging.pixels import scaled_to_8_bits

logger = logging.getLogger(__name__)

_EXIF_ORIENTATION = 0x0112  # PIL.ExifTags.Base.Orientation, since Pillow 9.4
# OpenCV before 4.6 takes all TIFF pixels of 32 bits for floating-point numbers.
_TIFF_IS_FRACTIONS = tuple(map(int, cv2.__version__.split(".")[:2])) < (4, 6)

MAX_PIXELS = 50_000_000
"""Default limit of decoded images. A PNG of a few megabytes can hold 900 million pixels, 2.7 GB."""

_END_MARKER = b"\xff\xd9"  # of a JPEG
_RADIANCE_HEADER = re.compile(rb"#\?(?:RADIANCE|RGBE)\n.*?\n\n[-+]Y +(\d{1,9}) +[-+]X +(\d{1,9})\n", re.DOTALL)
_PFM_HEADER = re.compile(rb"P[fF]\s+(\d{1,9})\s+(\d{1,9})\s")
_NETPBM_HEADER = re.compile(rb"P([2356])" + 3 * rb"(?:\s|#[^\n]*\n)+(\d{1,9})\b")  # width, height, largest value
_NOT_AN_IMAGE = "it is damaged or not an image in a format that OpenCV and Pillow read"

# Pillow warns of images that are larger than half of its limit; here the limit is max_pixels.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


class ImageError(ValueError):
    """Data that cannot be decoded to an image. The message is one clause, without the file's name."""


def read_image(path: Path) -> NDArray[np.uint8]:
    """Read an image file to uint8 HxWx3 BGR, by the rules of :func:`decode_image_bytes`, and with its errors."""
    if path.exists() and not path.is_file():
        raise ImageError("it is not a file")  # reading a pipe would wait for its writer
    try:
        return decode_image_bytes(path.read_bytes())
    except OSError as error:
        raise ImageError(error.strerror or str(error)) from error


def decode_image_bytes(data: bytes | NDArray[np.uint8], *, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """Decode the bytes of an image file to uint8 HxWx3 BGR.

    Grey becomes three equal channels, transparency is dropped, whole numbers of more than 8 bits are scaled by
    :func:`smart_caption_ros.imaging.pixels.scaled_to_8_bits`, fractions are grey levels from 0 to 1, a Radiance picture
    is mapped to those, and the orientation stored by a camera (EXIF) is applied.

    Args:
        max_pixels: images whose header claims more pixels are not decoded; Pillow refuses more than 178 million.

    Raises:
        ImageError: the bytes cannot be decoded; one clause.
    """
    raw = bytes(data)
    if not raw:
        raise ImageError("it is empty")
    if _lacks_end_marker(raw):
        if _is_truncated_jpeg(raw):
            # libjpeg would fill the missing part with grey and report success.
            raise ImageError(f"the JPEG data is truncated ({len(raw)} bytes)")
        _note_missing_end_marker()
        raw = raw.rstrip(b"\xff") + _END_MARKER
    _check_pixels(raw, max_pixels)
    # OpenCV does not apply the orientation of an AVIF, and some releases not that of a PNG or WebP either.
    if raw[4:8] == b"ftyp" or (raw.startswith((b"\x89PNG", b"RIFF")) and _is_turned(raw)):
        return _decoded_by_pillow(raw)
    header = _NETPBM_HEADER.match(raw)
    is_text = header is not None and header[1] in b"23"
    if is_text:
        raw += b"\n"  # OpenCV before 4.6 reads on after the last number
    try:
        image = _imdecode(raw, cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
        if image is None or image.dtype not in (np.uint8, np.uint16):
            image = _imdecode(raw, cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise ImageError(f"OpenCV refuses it ({' '.join(str(error.err).split())})") from error
    if image is None:
        return _decoded_by_pillow(raw)
    if _TIFF_IS_FRACTIONS and image.dtype == np.float32 and raw.startswith((b"II*\0", b"MM\0*")):
        sample_format = _tiff_tags(raw).get(TiffImagePlugin.SAMPLEFORMAT, (1,))[0]
        image = image.view({1: np.uint32, 2: np.int32}.get(sample_format, np.float32))
    if header:
        image = _scaled_by_largest_value(image, int(header[4]), is_text=is_text)
    return _to_bgr(image, is_radiance=raw.startswith(b"#?"))


def _imdecode(raw: bytes, flags: int) -> NDArray[Any] | None:
    with quiet_opencv():
        return cv2.imdecode(np.frombuffer(raw, np.uint8), flags)


def _scaled_by_largest_value(image: NDArray[Any], largest: int, *, is_text: bool) -> NDArray[Any]:
    """Scale the pixels of a PGM or PPM picture by the largest value in its header."""
    # OpenCV scales text pictures of up to 8 bits. 65535 does not say how many of the 16 bits a camera uses.
    if largest in (0, 255, 65535) or (largest < 255 and is_text):
        return image
    return np.rint(np.minimum(image, largest) * (255 / largest)).astype(np.uint8)


def _to_bgr(image: NDArray[Any], *, is_radiance: bool) -> NDArray[np.uint8]:
    """Convert what OpenCV decoded, (H, W) or (H, W, C) of any type, to uint8 HxWx3."""
    kind, bits = image.dtype.kind, 8 * image.dtype.itemsize
    if kind == "f":
        if is_radiance:
            image = cv2.createTonemap(2.2).process(image)
        low, high = float(image.min()), float(image.max())
        if not (low >= 0.0 and high <= 1.0):  # also where they are not finite
            raise ImageError(f"its fractions of {bits} bits go from {low:g} to {high:g}, and grey levels from 0 to 1")
        image = np.rint(image * 255.0).astype(np.uint8)
    elif kind == "i" and image.min(initial=0) < 0:
        raise ImageError(f"its whole numbers of {bits} bits are below 0: it is no picture")
    image = scaled_to_8_bits(image)
    channels = 1 if image.ndim == 2 else image.shape[2]
    if channels not in (1, 3, 4):
        raise ImageError(f"it has {channels} channels, and a picture has 1, 3 or 4")
    if channels == 3:
        return image
    to_bgr = cv2.COLOR_GRAY2BGR if channels == 1 else cv2.COLOR_BGRA2BGR
    return cv2.cvtColor(image, to_bgr).astype(np.uint8, copy=False)


def _decoded_by_pillow(raw: bytes) -> NDArray[np.uint8]:
    """Decode an image of a format that this OpenCV does not know, such as GIF before OpenCV 5."""
    try:
        with Image.open(io.BytesIO(raw)) as image:
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith(("I", "F")):  # more than 8 bits, which convert() would cut off
                return _to_bgr(np.array(upright), is_radiance=False)
            return np.array(upright.convert("RGB"))[:, :, ::-1].copy()
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError(_NOT_AN_IMAGE) from error


def read_image_size(path: Path) -> tuple[int, int]:
    """Read width and height, as :func:`read_image` would give them, from the header of an image file."""
    try:
        with Image.open(path) as image:
            width, height = image.size
            if isinstance(image, TiffImagePlugin.TiffImageFile):  # Pillow 11 and later give the turned size
                width, height = image.tag_v2[TiffImagePlugin.IMAGEWIDTH], image.tag_v2[TiffImagePlugin.IMAGELENGTH]
            return (height, width) if _orientation_of(image) in (5, 6, 7, 8) else (width, height)
    except (OSError, SyntaxError, LookupError, ValueError, Image.DecompressionBombError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged or not an image"
        raise ImageError(reason) from error


def _orientation_of(image: Image.Image) -> int:
    """Read the orientation that a camera has stored; 1 if there is none."""
    # getexif() decodes the whole PNG if there is no EXIF chunk before the pixels.
    exif = image.getexif() if image.format != "PNG" or "exif" in image.info else {}
    return int(exif.get(_EXIF_ORIENTATION, 1))


def _is_turned(raw: bytes) -> bool:
    with suppress(OSError, SyntaxError, ValueError), Image.open(io.BytesIO(raw)) as image:
        return _orientation_of(image) != 1
    return False


def _check_pixels(raw: bytes, max_pixels: int) -> None:
    """Check the size in the header of an encoded image, before memory is allocated for its pixels."""
    limit = f"more than the limit of {max_pixels / 1e6:g} megapixels"
    size: tuple[int, int] | None = None
    try:
        with suppress(OSError, SyntaxError, ValueError), Image.open(io.BytesIO(raw)) as image:
            size = image.size
    except Image.DecompressionBombError:
        raise ImageError(f"it has {limit}") from None
    if size is None:  # Radiance, PFM, and unusual PPM and TIFF, which OpenCV reads and a Pillow does not
        if match := _RADIANCE_HEADER.match(raw):
            size = int(match[2]), int(match[1])
        elif match := _PFM_HEADER.match(raw):
            size = int(match[1]), int(match[2])
        elif match := _NETPBM_HEADER.match(raw):
            size = int(match[2]), int(match[3])
        else:
            with suppress(SyntaxError, ValueError, LookupError, TypeError, struct.error):
                tags = _tiff_tags(raw)
                size = int(tags[TiffImagePlugin.IMAGEWIDTH]), int(tags[TiffImagePlugin.IMAGELENGTH])
    if size is None:
        raise ImageError(_NOT_AN_IMAGE)
    if size[0] * size[1] > max_pixels:
        raise ImageError(f"it has {size[0]}x{size[1]} pixels, {limit}")


def _tiff_tags(raw: bytes) -> TiffImagePlugin.ImageFileDirectory_v2:
    tags = TiffImagePlugin.ImageFileDirectory_v2(raw[:8])
    stream = io.BytesIO(raw)
    stream.seek(tags.next)
    tags.load(stream)
    return tags


def _lacks_end_marker(raw: bytes) -> bool:
    """Whether the bytes are a JPEG whose last scan has no end marker.

    Marker bytes cannot occur inside the entropy-coded data of a scan, so an end of image (FFD9) must follow the last
    start of a scan (FFDA). Some cameras append bytes after it.
    """
    return raw.startswith(b"\xff\xd8") and raw.rfind(_END_MARKER) < max(raw.rfind(b"\xff\xda"), 2)


def _is_truncated_jpeg(raw: bytes) -> bool:
    """Whether a JPEG without end marker lacks pixels as well; MJPEG cameras leave out the marker alone.

    Bytes that are appended change the picture only if pixels are missing, because they are decoded in their place. A
    progressive JPEG counts as truncated, because missing scans cannot be detected.
    """
    if b"\xff\xc2" in raw[: raw.rfind(b"\xff\xda")]:
        return True
    content = raw.rstrip(b"\xff")  # half of the end marker
    thumbnails = []
    try:
        for more in (b"", b"\xaa\x55" * 256):
            with Image.open(io.BytesIO(content + more + _END_MARKER)) as image:  # unlike OpenCV, Pillow prints nothing
                image.draft("RGB", (image.width // 8, image.height // 8))
                thumbnails.append(image.tobytes())
    except (OSError, SyntaxError, ValueError):
        return True
    except Image.DecompressionBombError:  # refused for its size
        return False
    return thumbnails[0] != thumbnails[1]


@cache
def _note_missing_end_marker() -> None:
    logger.warning("a JPEG image has no end marker (FFD9), as some cameras send it; it is decoded nevertheless")


@contextmanager
def opencv_path(path: Path) -> Iterator[str]:
    """Yield a path under which OpenCV and FFmpeg open a file.

    It is absolute, because FFmpeg takes what is before the colon of "run:1.avi" for a protocol. OpenCV ends the process
    at a name that is not UTF-8: such a file is opened by its descriptor.
    """
    try:
        name = str(path.absolute())
        name.encode()
        yield name
    except UnicodeEncodeError:
        with path.open("rb") as file:
            yield f"/proc/self/fd/{file.fileno()}"


_log_levels: list[int] = []
"""OpenCV's log level before each thread that wants it quiet; the last one to leave restores the first."""
_log_lock = threading.Lock()


@contextmanager
def quiet_opencv() -> Iterator[None]:
    """Suppress OpenCV's log lines in the block; the caller reports failures."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # AV_LOG_QUIET; read when FFmpeg is first used
    # Functions of cv2 in OpenCV 4.5 and 4.6 (Ubuntu), and of a submodule in later versions.
    functions: Any = getattr(cv2.utils, "logging", cv2)
    with _log_lock:
        _log_levels.append(functions.getLogLevel())
        functions.setLogLevel(0)
    try:
        yield
    finally:
        with _log_lock:
            functions.setLogLevel(_log_levels.pop())
