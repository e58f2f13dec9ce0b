"""The keys of the view, from the bytes that a terminal sends."""

from __future__ import annotations

import enum


class Key(enum.Enum):
    """A key that the view knows, by the bytes of xterm and of the Linux console."""

    QUIT = (b"q", b"Q", b"\x03", b"\x04")
    PAUSE = (b" ",)
    UP = (b"\x1b[A", b"\x1bOA", b"k")
    DOWN = (b"\x1b[B", b"\x1bOB", b"j")
    PAGE_UP = (b"\x1b[5~",)
    PAGE_DOWN = (b"\x1b[6~",)
    HOME = (b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"g")
    END = (b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"G")
    NEXT_CAMERA = (b"\t",)
    PREVIOUS_CAMERA = (b"\x1b[Z",)
    REDRAW = (b"\x0c",)


_KEYS = {sequence: key for key in Key for sequence in key.value}
_MAX_SEQUENCE = 16


class KeyParser:
    """Finds keys in the bytes of a terminal; a sequence may come in pieces, and an unknown one is left out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, received: bytes) -> list[Key | int]:
        """Return the keys that these bytes complete: a digit as its number, and any other as a :class:`Key`."""
        pending, self._rest = self._rest + received, b""
        keys: list[Key | int] = []
        while pending:
            length = _sequence_length(pending)
            if length is None:
                self._rest = pending if len(pending) < _MAX_SEQUENCE else b""
                break
            sequence, pending = pending[:length], pending[length:]
            if sequence.isdigit():
                keys.append(int(sequence))
            elif sequence in _KEYS:
                keys.append(_KEYS[sequence])
        return keys


def _sequence_length(pending: bytes) -> int | None:
    """Return the length of the first key's sequence; None while it is not complete."""
    if pending[0] != 0x1B:
        return 1
    if len(pending) == 1:
        return None
    if pending[1:2] == b"O":
        return 3 if len(pending) >= 3 else None
    if pending[1:2] != b"[":
        return 1  # the escape key, or a key with Alt: the escape byte alone is left out
    # ECMA-48, 5.4: parameter and intermediate bytes, then one final byte.
    for place in range(2, len(pending)):
        if 0x40 <= pending[place] <= 0x7E:
            return place + 1
    return None
