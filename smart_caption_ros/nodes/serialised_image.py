"""sensor_msgs/Image read in place, from the bytes that the middleware delivers.

rclpy's own way to a message copies the pixels twice on the way to Python (6 MB each time at 1080p).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Header

_BYTE_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}  # plain CDR; other representations are left to rclpy


@dataclass
class SerialisedImage:
    """The fields of a sensor_msgs/Image; ``data`` is a view of the serialised message, which nobody can write to."""

    header: Header
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: NDArray[np.uint8]


def read_image(serialised: bytes) -> SerialisedImage | Image:
    """A serialised sensor_msgs/Image as it came (a subscription made with ``raw=True``).

    Returns:
        A view of it; where it is not in plain CDR, the message as rclpy reads it.

    Raises:
        ValueError: it ends before its fields do.
    """
    order = _BYTE_ORDERS.get(serialised[:2])
    if order is None:
        message: Image = deserialize_message(serialised, Image)
        return message
    reader = _Reader(serialised, order)
    seconds, nanoseconds = reader.number("i"), reader.number("I")
    header = Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=reader.text())
    height, width, encoding = reader.number("I"), reader.number("I"), reader.text()
    return SerialisedImage(
        header=header,
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=reader.number("B"),
        step=reader.number("I"),
        data=reader.octets(reader.number("I")),
    )


class _Reader:
    """Plain CDR: every number begins at a multiple of its own size, counted from behind the four bytes in front."""

    _FRONT = 4

    def __init__(self, serialised: bytes, order: str) -> None:
        self._bytes, self._order, self._at = serialised, order, self._FRONT

    def number(self, kind: str) -> int:
        """An integer; ``kind`` is one of struct's letters."""
        size = struct.calcsize(f"{self._order}{kind}")
        self._at += -(self._at - self._FRONT) % size
        value: int = struct.unpack(f"{self._order}{kind}", self.octets(size).tobytes())[0]
        return value

    def text(self) -> str:
        """A string with its length in front and, counted, a zero behind."""
        return self.octets(self.number("I")).tobytes().rstrip(b"\0").decode("utf-8", errors="replace")

    def octets(self, count: int) -> NDArray[np.uint8]:
        """The next ``count`` bytes, not copied."""
        if self._at + count > len(self._bytes):
            raise ValueError(f"an image message of {len(self._bytes)} bytes ends before its fields do")
        found = np.frombuffer(self._bytes, np.uint8, count, self._at)
        self._at += count
        return found
