"""Encode values as JSON that every parser accepts, without infinity, NaN and lone surrogates; read its numbers."""

import json
import math
import re
from typing import Any

# An escape sequence of JSON; the group matches a lone surrogate.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def json_text(value: Any, **settings: Any) -> str:
    """Encode a value as JSON, with null in place of infinity and NaN.

    A lone surrogate, which stands for a byte of a file name that is not UTF-8, is written as the text `\\udce9`.
    """
    try:
        text = json.dumps(value, allow_nan=False, **settings)
    except ValueError:
        return json.dumps(_valid(value), allow_nan=False, **settings)
    # Most texts have no surrogate. A pair, which is written as two escapes, is not changed.
    return text if text.isascii() and "\\ud" not in text else json.dumps(_valid(value), allow_nan=False, **settings)


def replace_lone_surrogates(json_text: str) -> str:
    """Replace the lone surrogates in a JSON text by question marks, because they have no UTF-8 encoding."""
    if "\\ud" not in json_text and "\\uD" not in json_text:  # no surrogate at all, which is the usual case
        return json_text
    return _ESCAPE.sub(lambda escape: "?" if escape[1] else escape[0], json_text)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Round a number for JSON; None for infinity and NaN."""
    return round(float(value), digits) if value is not None and math.isfinite(value) else None


def finite_numbers(value: Any) -> list[float] | None:
    """Read numbers from JSON; None unless the value is a list of finite numbers."""
    if not isinstance(value, list | tuple) or not all(type(number) in (int, float) for number in value):
        return None
    try:
        numbers = [float(number) for number in value]
    except OverflowError:  # a whole number above 1.8e308
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _valid(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, list | tuple) else value
