"""The keys of the view, from the bytes that a terminal sends.

The libraries for this (blessed, readchar) read standard input alone; the view also takes keys from /dev/tty where
standard input is a pipe.
"""

from __future__ import annotations

import enum
import re


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
# A control sequence (ECMA-48, 5.4), a key of the numeric pad, one byte; or the escape key alone, or with Alt.
_SEQUENCE = re.compile(rb"\x1b\[[^@-~]*[@-~]|\x1bO.|[^\x1b]|\x1b(?=[^\[O])", re.DOTALL)


class KeyParser:
    """Finds keys in the bytes of a terminal; a sequence may come in pieces, and an unknown one is left out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, received: bytes) -> list[Key | int]:
        """Return the keys that these bytes complete: a digit as its number, and any other as a :class:`Key`."""
        pending, place = self._rest + received, 0
        keys: list[Key | int] = []
        while match := _SEQUENCE.match(pending, place):
            sequence, place = match[0], match.end()
            if sequence.isdigit():
                keys.append(int(sequence))
            elif sequence in _KEYS:
                keys.append(_KEYS[sequence])
        rest = pending[place:]
        self._rest = rest if len(rest) < _MAX_SEQUENCE else b""
        return keys
