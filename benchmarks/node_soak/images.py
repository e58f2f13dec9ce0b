"""Serialised image messages of a soak, good and bad, and the answer that each must get.

Messages are serialised once. Before each publication, stamp and frame id are written into the bytes, so that an image
costs the camera only two copies, at 30 images of 1080p per second.
"""

import array
import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import cv2
import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import Header

from smart_caption_ros.captioning import Caption, Captioner
from smart_caption_ros.imaging.encoded_images import decode_image_bytes
from smart_caption_ros.imaging.image_messages import encode_image

_FRAME_ID = "soak_{:010d}"
_STAMP_AT, _FRAME_ID_AT = 4, 16  # in plain CDR: behind the encapsulation, and behind stamp and length
_JPEG_QUALITY = 90
_HUGE = 2**31 - 1
_FUTURE_S = 86_400

Stamp = tuple[int, int]
"""Seconds and nanoseconds."""


class Answer(Enum):
    """The answer that an image must get."""

    CAPTION = "caption"
    ERROR = "error"
    CAPTION_OR_ERROR = "caption or error"
    """An error because of its stamp, unless every age is accepted."""
    NONE = "none"
    """No answer, because the bytes are not an image message."""


@dataclass(frozen=True)
class Template:
    """A serialised message without its stamp and frame id."""

    kind: str
    """``good``, or what is wrong with it."""
    serialised: bytes
    """Plain CDR, or arbitrary bytes where the answer is ``Answer.NONE``."""
    answer: Answer
    """The answer that it must get; an image whose age is wrong may always be answered as stale."""
    picture: str = ""
    """Key of its expected caption; empty if there is none."""
    shift_s: int | None = 0
    """Difference of its stamp from the present time, seconds; None for a stamp before 1970."""

    def stamped(self, number: int, now_ns: int) -> tuple[bytes, Stamp]:
        """Return the message with a stamp and the frame id of a number, and the stamp."""
        seconds, nanoseconds = divmod(now_ns, 10**9)
        stamp = (-seconds if self.shift_s is None else seconds + self.shift_s, nanoseconds)
        if self.answer is Answer.NONE:
            return self.serialised, stamp
        message = bytearray(self.serialised)
        struct.pack_into("<iI", message, _STAMP_AT, *stamp)
        name = frame_id(number).encode()
        message[_FRAME_ID_AT : _FRAME_ID_AT + len(name)] = name
        return bytes(message), stamp


@dataclass(frozen=True)
class Templates:
    """The messages of one topic."""

    good: Sequence[Template]
    bad: Sequence[Template]

    def choose(self, random: random.Random, bad_share: float) -> Template:
        """Choose a bad message with the probability ``bad_share``, else a good one."""
        return random.choice(self.bad if random.random() < bad_share else self.good)


def frame_id(number: int) -> str:
    """Return the frame id of an image by its number."""
    return _FRAME_ID.format(number)


def number_of(frame_id: str) -> int | None:
    """Return the number of an image by its frame id; None for a frame id of no image of the soak."""
    prefix, _, digits = frame_id.partition("_")
    return int(digits) if prefix == "soak" and digits.isdecimal() else None


def raw_templates(pictures_bgr: Sequence[NDArray[np.uint8]], seed: int) -> Templates:
    """Return messages of the topic `image`; pictures are uint8 (H, W, 3), random bytes come from ``seed``."""
    picture = pictures_bgr[0]
    height, width = picture.shape[:2]
    fields = encode_image(picture)
    whole = _raw(fields)
    nan = array.array("B", np.full((4, 4), math.nan, np.float32).tobytes())
    wrong = {
        "step shorter than a row": {"step": 3 * width - 1},
        "step longer than the data": {"step": 3 * width + 64},
        "unknown encoding": {"encoding": "rgb565?"},
        "encoding of 10 kB": {"encoding": "x" * 10_000},
        "truncated data": {"data": fields["data"][: len(fields["data"]) // 2]},
        "twice the rows": {"height": height // 2},  # drivers pad buffers, but not by that much
        "depth": {"encoding": "16UC1"},
        "huge claimed size": {"width": _HUGE, "height": _HUGE, "step": _HUGE},
        "step of zero": {"step": 0},
        "empty": {"width": 0, "height": 0, "step": 0, "data": array.array("B")},
        "size without data": {"data": array.array("B")},
        "NaN pixels": {"width": 4, "height": 4, "step": 16, "encoding": "32FC1", "data": nan},
    }
    bad = [Template(kind, _raw({**fields, **changes}), Answer.ERROR) for kind, changes in wrong.items()]
    bad += _wrong_stamps(whole, _raw_name(0))
    # The length of the pixels is the last number before them.
    length_at = len(whole) - len(fields["data"]) - 4
    lying = bytearray(whole)
    struct.pack_into("<I", lying, length_at, 2**32 - 1)
    bad += [
        Template("truncated CDR", whole[: len(whole) // 2], Answer.NONE),
        Template("CDR that ends in the header", whole[:10], Answer.NONE),
        Template("CDR with a wrong length of the data", bytes(lying), Answer.NONE),
        *_not_cdr(seed),
    ]
    good = [
        Template("good", _raw(encode_image(picture)), Answer.CAPTION, _raw_name(number))
        for number, picture in enumerate(pictures_bgr)
    ]
    return Templates(good, bad)


def compressed_templates(pictures_bgr: Sequence[NDArray[np.uint8]], seed: int) -> Templates:
    """Return messages of the topic `image/compressed`; see :func:`raw_templates`."""
    jpegs = [_jpeg(picture) for picture in pictures_bgr]
    noise = random.Random(seed)
    wrong = {
        "random compressed bytes": noise.randbytes(5000),
        "random bytes after a JPEG header": jpegs[0][:4] + noise.randbytes(5000),
        "empty compressed data": b"",
        "truncated JPEG": jpegs[0][: len(jpegs[0]) // 2],
        "PNG of a huge claimed size": _png_claiming(60_000, 60_000),
        "PNG of no size": _png_claiming(0, 0),
    }
    bad = [Template(kind, _compressed(data), Answer.ERROR) for kind, data in wrong.items()]
    bad.append(Template("compressed depth", _compressed(jpegs[0], "32FC1; compressedDepth png"), Answer.ERROR))
    whole = _compressed(jpegs[0])
    bad += _wrong_stamps(whole, _compressed_name(0))
    bad += [Template("truncated CDR of a compressed image", whole[: len(whole) // 2], Answer.NONE), *_not_cdr(seed)]
    good = [
        Template("good", _compressed(jpeg), Answer.CAPTION, _compressed_name(number))
        for number, jpeg in enumerate(jpegs)
    ]
    return Templates(good, bad)


def expected_captions(captioner: Captioner, pictures_bgr: Sequence[NDArray[np.uint8]]) -> dict[str, Caption]:
    """Caption every picture, as it is and from its JPEG, with the captioner called directly.

    Returns:
        Key of a picture (``Template.picture``) -> its caption.
    """
    found = {}
    for number, picture in enumerate(pictures_bgr):
        found[_raw_name(number)] = captioner.caption(picture)
        found[_compressed_name(number)] = captioner.caption(decode_image_bytes(_jpeg(picture)))
    return found


def _raw_name(number: int) -> str:
    return f"{number}.raw"


def _compressed_name(number: int) -> str:
    return f"{number}.jpg"


def _wrong_stamps(whole: bytes, picture: str) -> list[Template]:
    return [
        Template("negative stamp", whole, Answer.CAPTION, picture, shift_s=None),
        Template("stamp in the future", whole, Answer.CAPTION_OR_ERROR, picture, shift_s=_FUTURE_S),
        Template("stamp of yesterday", whole, Answer.CAPTION, picture, shift_s=-_FUTURE_S),
    ]


def _not_cdr(seed: int) -> list[Template]:
    noise = random.Random(seed)
    return [
        Template("random bytes", b"\0\1\0\0" + b"\xff" * 16 + noise.randbytes(500), Answer.NONE),
        Template("bytes in an unknown representation", b"\xfe\xdc\0\0" + noise.randbytes(500), Answer.NONE),
        Template("encapsulation header alone", b"\0\1\0\0", Answer.NONE),
    ]


_HEADER = Header(stamp=Time(sec=0, nanosec=0), frame_id=frame_id(0))


def _raw(fields: dict[str, Any]) -> bytes:
    return bytes(serialize_message(Image(header=_HEADER, **fields)))


def _compressed(data: bytes, format: str = "bgr8; jpeg compressed bgr8") -> bytes:
    message = CompressedImage(header=_HEADER, format=format, data=array.array("B", data))
    return bytes(serialize_message(message))


def _jpeg(picture_bgr: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".jpg", picture_bgr, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1].tobytes()


def _png_claiming(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes whose header claims a size."""
    png = bytearray(cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes())
    struct.pack_into(">II", png, 16, width, height)
    return bytes(png)
