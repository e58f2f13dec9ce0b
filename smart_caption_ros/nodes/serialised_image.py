"""Parse a serialised sensor_msgs/Image without copying its pixels.

rclpy's conversion to a Python message copies the pixels twice, 6 MB each time at 1080p.
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

_BYTE_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
"""Representation identifiers of plain CDR; rclpy deserialises messages in any other representation."""


@dataclass
class SerialisedImage:
    """The fields of a sensor_msgs/Image; ``data`` is a read-only view of the serialised message."""

    header: Header
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: NDArray[np.uint8]


def parse_image(serialised: bytes) -> SerialisedImage | Image:
    """Parse a serialised sensor_msgs/Image, as a subscription created with ``raw=True`` delivers it.

    Returns:
        A view of the message, or the message as rclpy deserialises it where it is not in plain CDR.

    Raises:
        ValueError: the message ends before its last field.
    """
    order = _BYTE_ORDERS.get(serialised[:2])
    if order is None:
        message: Image = deserialize_message(serialised, Image)
        return message
    cdr = _CdrParser(serialised, order)
    seconds, nanoseconds = cdr.integer("i"), cdr.integer("I")
    header = Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=cdr.string())
    height, width, encoding = cdr.integer("I"), cdr.integer("I"), cdr.string()
    return SerialisedImage(
        header=header,
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=cdr.integer("B"),
        step=cdr.integer("I"),
        data=cdr.octets(cdr.integer("I")),
    )


class _CdrParser:
    """Reads plain CDR: each number is aligned to its own size, counted from the end of the encapsulation header."""

    _HEADER_BYTES = 4

    def __init__(self, serialised: bytes, order: str) -> None:
        self._bytes, self._order, self._at = serialised, order, self._HEADER_BYTES

    def integer(self, kind: str) -> int:
        """Read an integer; ``kind`` is its format character in :mod:`struct`."""
        size = struct.calcsize(f"{self._order}{kind}")
        self._at += -(self._at - self._HEADER_BYTES) % size
        value: int = struct.unpack(f"{self._order}{kind}", self.octets(size).tobytes())[0]
        return value

    def string(self) -> str:
        """Read a string: its length, its bytes and a zero, which the length includes."""
        return self.octets(self.integer("I")).tobytes().rstrip(b"\0").decode("utf-8", errors="replace")

    def octets(self, count: int) -> NDArray[np.uint8]:
        """Return a view of the next ``count`` bytes."""
        if self._at + count > len(self._bytes):
            raise ValueError(f"an image message of {len(self._bytes)} bytes ends before its fields do")
        found = np.frombuffer(self._bytes, np.uint8, count, self._at)
        self._at += count
        return found
