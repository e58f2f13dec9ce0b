"""JSON files of data sets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from smart_caption_ros.sources.source import SourceError

# An escape sequence of JSON; the group is half a surrogate pair without its other half.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def read_json(path: Path, **hooks: Any) -> Any:
    """Read a JSON file; half a surrogate pair, which no UTF-8 can hold, becomes a question mark.

    Args:
        path: the file, UTF-8 with or without a byte order mark.
        hooks: arguments of :func:`json.loads`.

    Raises:
        SourceError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(without_half_pairs(path.read_text(encoding="utf-8-sig")), **hooks)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise SourceError(f"{path} is not JSON: {error}") from None


def without_half_pairs(json_text: str) -> str:
    """Replace halves of surrogate pairs in the escape sequences of a JSON text by question marks."""
    if "\\ud" not in json_text and "\\uD" not in json_text:  # a surrogate, whole pairs included
        return json_text
    return _ESCAPE.sub(lambda escape: "?" if escape[1] else escape[0], json_text)


def whole_number(value: Any) -> int | None:
    """Return a whole number in the spellings of different tools (7, 7.0, "7"); None for anything else."""
    if isinstance(value, str) and value.isascii() and value.strip().isdecimal():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return None
    return int(value)
