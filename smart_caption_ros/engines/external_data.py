"""Find the files from which an ONNX graph reads its weights, without the onnx package, which robots do not have.

A graph names these files by paths. A bundle may come from an untrusted source, so all of them must be in its manifest,
with their checksums, before an engine opens any; the name of a cached TensorRT engine depends on them, and their mapped
pages are released after loading. Neither ONNX Runtime nor TensorRT tells the paths. Only the fields that lead to
``TensorProto.external_data`` are parsed (onnx.proto).
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

# For each message: numbers of the fields that lead to external data, and the messages in them.
_MODEL = {7: "graph", 20: "training", 25: "function"}
_MESSAGES: dict[str, dict[int, str]] = {
    "model": _MODEL,
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def external_locations(path: Path) -> set[str]:
    """Read the paths of a graph's external weights, as the graph spells them.

    Raises:
        ValueError: the file is not an ONNX graph.
    """
    with path.open("rb") as stream:
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                return set(_locations(content, 0, len(content), "model"))
            except (IndexError, UnicodeDecodeError, RecursionError):
                raise ValueError(f"{path} is not an ONNX graph") from None


def _locations(content: mmap.mmap, start: int, end: int, message: str) -> Iterator[str]:
    if message == "entry":
        entry = {number: content[begin:stop] for number, begin, stop in _fields(content, start, end)}
        if entry.get(1) == b"location":
            yield entry.get(2, b"").decode()
        return
    inside = _MESSAGES[message]
    for number, begin, stop in _fields(content, start, end):
        if number in inside:
            yield from _locations(content, begin, stop, inside[number])


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, begin and end of each length-delimited field of a message (protocol buffers' wire format)."""
    place = start
    while place < end:
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == _VARINT:
            _, place = _varint(content, place)
        elif kind == _BYTES:
            length, place = _varint(content, place)
            yield tag >> 3, place, place + length
            place += length
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        else:
            raise IndexError(f"wire type {kind}")
    if place > end:
        raise IndexError("a field longer than its message")


def _varint(content: mmap.mmap, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise IndexError("a number longer than 64 bits")
