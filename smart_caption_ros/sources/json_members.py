"""Read a large JSON object member by member, so that memory holds the text and one value."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smart_caption_ros.sources.source import SourceError

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def read_text(path: Path) -> str:
    """Read the text of a JSON file.

    Raises:
        SourceError: the file cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not JSON: {error}") from None


def members(text: str) -> Iterator[tuple[str, int, Any]]:
    """Yield the members of a JSON object: key, offset of the value, and value.

    Raises:
        ValueError: the text is not JSON or not an object.
    """
    position = _skip_space(text, 0)
    if text[position : position + 1] != "{":
        raise json.JSONDecodeError("Expecting an object", text, position)
    position = _skip_space(text, position + 1)
    closed = text[position : position + 1] == "}"
    while not closed:
        key, end = _decode(text, position)
        colon = _skip_space(text, end)
        if not isinstance(key, str) or text[colon : colon + 1] != ":":
            raise json.JSONDecodeError("Expecting a name in quotes and a colon", text, position)
        start = _skip_space(text, colon + 1)
        value, end = _decode(text, start)
        yield key, start, value
        position = _skip_space(text, end)
        closed = text[position : position + 1] == "}"
        if not closed:
            if text[position : position + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' or '}'", text, position)
            position = _skip_space(text, position + 1)
    if _skip_space(text, position + 1) != len(text):
        raise json.JSONDecodeError("Extra data", text, position + 1)


def value_at(text: str, start: int) -> Any:
    """Decode the value at an offset from :func:`members`."""
    return _decode(text, start)[0]


def _decode(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except RecursionError:
        raise json.JSONDecodeError("Nested too deeply", text, position) from None


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
