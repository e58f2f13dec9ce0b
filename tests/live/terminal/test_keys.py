"""Keys are found in whatever pieces their bytes come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_caption_ros.live.terminal.keys import Key, KeyParser


@pytest.mark.parametrize(
    ("received", "keys"),
    [
        (b"q", [Key.QUIT]),
        (b" \t7", [Key.PAUSE, Key.NEXT_CAMERA, 7]),
        (b"\x1b[A\x1bOB\x1b[5~\x1b[Z", [Key.UP, Key.DOWN, Key.PAGE_UP, Key.PREVIOUS_CAMERA]),
        (b"\x1bq", [Key.QUIT]),
        (b"\x1b[1;5Aq", [Key.QUIT]),
        (b"\x1b[200~q", [Key.QUIT]),
        (b"xyz\xff", []),
    ],
)
def test_keys(received: bytes, keys: list[Key | int]) -> None:
    assert KeyParser().feed(received) == keys
    parser = KeyParser()
    assert [key for byte in received for key in parser.feed(bytes([byte]))] == keys


@given(st.binary(max_size=200))
def test_no_bytes_stop_the_parser(received: bytes) -> None:
    parser = KeyParser()
    parser.feed(received)
    assert Key.QUIT in parser.feed(b"~~q" * 9)
