"""sensor_msgs/Image and CompressedImage <-> pixels, without ROS.

The functions take any object with the fields of the message (rclpy's, rosbags' or a namespace) and treat every
field as untrusted: inconsistent fields raise ImageMessageError. `_ENCODINGS` lists the encodings that are converted;
alpha is dropped. 16-bit values are scaled first, see :func:`smart_caption_ros.imaging.pixels.scaled_to_8_bits`. 16UC1,
depth in millimetres (REP 118), is refused.
"""

import array
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging.encoded_images import MAX_PIXELS, ImageError, decode_image_bytes
from smart_caption_ros.imaging.pixels import check_image, scaled_to_8_bits
from smart_caption_ros.text import shortened


@dataclass(frozen=True)
class _Encoding:
    """The memory layout of pixels, and the cv2.cvtColor code for the conversion to BGR (None: they are BGR)."""

    dtype: str
    channels: int
    to_bgr: int | None
    multiple: int = 1
    """Divisor of the width, and of the height where the colour has rows of its own."""
    minimum: int = 1
    """Minimum of width and height."""
    colour_rows: bool = False
    """Whether height / 2 rows of colour values follow the rows of the image."""


_ENCODINGS: dict[str, _Encoding] = {
    "bgr8": _Encoding("u1", 3, None),
    "rgb8": _Encoding("u1", 3, cv2.COLOR_RGB2BGR),
    "bgra8": _Encoding("u1", 4, cv2.COLOR_BGRA2BGR),
    "rgba8": _Encoding("u1", 4, cv2.COLOR_RGBA2BGR),
    "mono8": _Encoding("u1", 1, cv2.COLOR_GRAY2BGR),
    "mono16": _Encoding("u2", 1, cv2.COLOR_GRAY2BGR),
    "8UC1": _Encoding("u1", 1, cv2.COLOR_GRAY2BGR),
    "8UC3": _Encoding("u1", 3, None),
    "8UC4": _Encoding("u1", 4, cv2.COLOR_BGRA2BGR),
    "bgr16": _Encoding("u2", 3, None),
    "rgb16": _Encoding("u2", 3, cv2.COLOR_RGB2BGR),
    "bgra16": _Encoding("u2", 4, cv2.COLOR_BGRA2BGR),
    "rgba16": _Encoding("u2", 4, cv2.COLOR_RGBA2BGR),
    "32FC1": _Encoding("f4", 1, cv2.COLOR_GRAY2BGR),  # fractions from 0 to 1; others are an error
    **{
        f"bayer_{pattern}{bits}": _Encoding(f"u{bits // 8}", 1, to_bgr, minimum=3)
        # OpenCV names a pattern by its second row and column (and since 4.5.5 also by its first).
        for pattern, to_bgr in {
            "rggb": cv2.COLOR_BayerBG2BGR,
            "bggr": cv2.COLOR_BayerRG2BGR,
            "gbrg": cv2.COLOR_BayerGR2BGR,
            "grbg": cv2.COLOR_BayerGB2BGR,
        }.items()
        for bits in (8, 16)
    },
    # BT.601, limited range
    "yuv422": _Encoding("u1", 2, cv2.COLOR_YUV2BGR_UYVY, multiple=2),
    "uyvy": _Encoding("u1", 2, cv2.COLOR_YUV2BGR_UYVY, multiple=2),
    "yuv422_yuy2": _Encoding("u1", 2, cv2.COLOR_YUV2BGR_YUY2, multiple=2),
    "yuyv": _Encoding("u1", 2, cv2.COLOR_YUV2BGR_YUY2, multiple=2),
    "nv12": _Encoding("u1", 1, cv2.COLOR_YUV2BGR_NV12, multiple=2, colour_rows=True),
    "nv21": _Encoding("u1", 1, cv2.COLOR_YUV2BGR_NV21, multiple=2, colour_rows=True),
}
_BY_SPELLING = {name.lower(): encoding for name, encoding in _ENCODINGS.items()}
_DEPTH = "16UC1"
_CODECS = {"h264": "H.264", "avc": "H.264", "h265": "H.265", "hevc": "H.265", "av1": "AV1", "vp9": "VP9", "vp8": "VP8"}
_START_CODES = (b"\0\0\1", b"\0\0\0\1")  # of H.264 and H.265
_PADDING_ROWS, _PADDING_BYTES = 32, 4096  # drivers round buffers up to whole blocks of rows, or to whole pages

SUPPORTED_ENCODINGS = tuple(_ENCODINGS)


class ImageMessageError(ImageError):
    """A sensor_msgs image message that cannot be decoded."""


def decode_image(message: Any) -> NDArray[np.uint8]:
    """Decode a sensor_msgs/Image to BGR.

    Returns:
        uint8 HxWx3, C-contiguous. It shares memory with the message only if that memory is read-only.

    Raises:
        ImageMessageError: for a zero size, an unknown encoding, depth, a step shorter than a row, data that are shorter
            than the rows or longer by more than the padding of a driver, a size that the encoding does not allow, more
            than :data:`MAX_PIXELS` pixels, and 32FC1 values that are not grey levels.
    """
    width, height, step = int(message.width), int(message.height), int(message.step)
    if width < 1 or height < 1:
        raise ImageMessageError(f"the image has no pixels (width {width}, height {height})")
    _refuse_depth(message.encoding)
    encoding = _BY_SPELLING.get(message.encoding.strip().lower())
    if encoding is None:
        raise ImageMessageError(
            f"unknown encoding {shortened(message.encoding)!r}; understood are {', '.join(SUPPORTED_ENCODINGS)}"
        )
    if width % encoding.multiple:
        raise ImageMessageError(f"{message.encoding} needs an even width, and this image's is {width}")
    if encoding.colour_rows and height % encoding.multiple:
        raise ImageMessageError(f"{message.encoding} needs an even height, and this image's is {height}")
    if min(width, height) < encoding.minimum:
        raise ImageMessageError(
            f"{message.encoding} needs at least {encoding.minimum}x{encoding.minimum} pixels, "
            f"and this image has {width}x{height}"
        )
    dtype = np.dtype(encoding.dtype).newbyteorder(">" if message.is_bigendian else "<")
    row_bytes = width * encoding.channels * dtype.itemsize
    if step < row_bytes:
        raise ImageMessageError(
            f"wrong step: a row of {width} {message.encoding} pixels takes {row_bytes} bytes, and step is {step}"
        )
    data = _bytes_of(message.data)
    row_count = height + height // 2 if encoding.colour_rows else height
    size = step * row_count
    if size - (step - row_bytes) <= data.size < size:  # the last row without its padding
        data = np.concatenate((data, np.zeros(size - data.size, np.uint8)))
    if data.size < size:
        raise ImageMessageError(
            f"truncated data: {row_count} rows of {step} bytes are {size} bytes, and there are {data.size}"
        )
    if data.size - size > max(_PADDING_ROWS * step, _PADDING_BYTES) or data.size >= 2 * size:
        raise ImageMessageError(
            f"wrong step or height: {row_count} rows of {step} bytes are {size} bytes, and there are {data.size}"
        )
    if width * height > MAX_PIXELS:
        raise ImageMessageError(
            f"the image has {width}x{height} pixels, more than the limit of {MAX_PIXELS / 1e6:g} megapixels"
        )

    rows = np.ascontiguousarray(data[:size].reshape(row_count, step)[:, :row_bytes])
    pixels = rows.view(dtype).reshape(row_count, width, encoding.channels)
    values = _to_uint8(pixels, message.encoding)
    if encoding.to_bgr is None:
        return values if not values.flags.writeable else np.array(values)
    try:
        image_bgr: NDArray[np.uint8] = cv2.cvtColor(values, encoding.to_bgr).astype(np.uint8, copy=False)
    except cv2.error as error:  # of OpenCV 4.5 (Ubuntu 22.04) for an image of one pixel
        raise ImageMessageError(
            f"OpenCV {cv2.__version__} cannot convert {width}x{height} {message.encoding}"
        ) from error
    return image_bgr


def decode_compressed(message: Any) -> NDArray[np.uint8]:
    """Decode a sensor_msgs/CompressedImage (JPEG, PNG and the other formats of OpenCV) to BGR.

    The format is taken from the data, because publishers fill the field `format` differently.

    Returns:
        uint8 HxWx3.

    Raises:
        ImageMessageError: for depth, for video, for empty, truncated or damaged data, and for more than
            :data:`MAX_PIXELS` pixels.
    """
    if "compressedDepth" in message.format:
        raise ImageMessageError("compressedDepth holds distances, not a picture; subscribe to a colour image")
    _refuse_depth(message.format.split(";")[0].strip())
    data = _bytes_of(message.data)
    try:
        return decode_image_bytes(data)
    except ImageError as error:
        if codec := _video_codec(message.format, data):
            raise ImageMessageError(
                f"the message holds {codec} video, which is not a picture by itself; publish JPEG, PNG or raw images"
            ) from error
        raise ImageMessageError(
            f"cannot decode the image in the format {shortened(message.format)!r}: {error}"
        ) from error


def encode_image(image_bgr: NDArray[np.uint8]) -> dict[str, Any]:
    """Encode uint8 HxWx3 pixels as the fields of a bgr8 sensor_msgs/Image.

    `data` is an array.array, which rclpy takes without checking each byte.
    """
    check_image(image_bgr)
    height, width = image_bgr.shape[:2]
    data = array.array("B", image_bgr.tobytes())
    return {"height": height, "width": width, "encoding": "bgr8", "is_bigendian": 0, "step": 3 * width, "data": data}


def _video_codec(format_field: str, data: NDArray[np.uint8]) -> str:
    """Return the name of the video codec of a message; empty where it is none."""
    plain = format_field.lower().replace(".", "")
    named = next((name for key, name in _CODECS.items() if key in plain), "")
    return named or ("H.264 or H.265" if data[:4].tobytes().startswith(_START_CODES) else "")


def _refuse_depth(encoding: str) -> None:
    if encoding.strip().upper() == _DEPTH:
        raise ImageMessageError(
            f"{_DEPTH} holds depth in millimetres (REP 118), not a picture; subscribe to a colour image, or publish "
            "grey levels as mono16"
        )


def _bytes_of(data: Any) -> NDArray[np.uint8]:
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise ImageMessageError(f"the data are not bytes but {type(data).__name__}") from error


def _to_uint8(pixels: NDArray[Any], encoding: str) -> NDArray[np.uint8]:
    """Convert 16-bit and float pixels to 8 bits; return 8-bit pixels unchanged."""
    if pixels.dtype.kind == "f":
        finite = np.isfinite(pixels)
        if not finite.all():
            count = pixels.size - int(finite.sum())
            raise ImageMessageError(
                f"{encoding} with {count} NaN or infinite values (depth, by the look of it) is not a picture"
            )
        low, high = float(pixels.min()), float(pixels.max())
        if low < 0.0 or high > 1.0:
            raise ImageMessageError(
                f"{encoding} pixels must be grey levels from 0 to 1, and these go from {low:g} to {high:g}"
            )
        return np.rint(pixels * 255.0).astype(np.uint8)
    return scaled_to_8_bits(pixels)
