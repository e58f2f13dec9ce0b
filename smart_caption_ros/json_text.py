"""Values as JSON that every reader takes: no infinity, no NaN and no half of a surrogate pair, which JSON lacks."""

import json
import math
import re
from typing import Any

# An escape sequence of JSON; the group is half a surrogate pair without its other half.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def json_text(value: Any, **settings: Any) -> str:
    """Encode a value as JSON, with null in place of infinity and NaN.

    Half of a surrogate pair, which stands for a byte of a file name that is not UTF-8, is written as `\\udce9`.
    """
    try:
        text = json.dumps(value, allow_nan=False, **settings)
    except ValueError:
        return json.dumps(_valid(value), allow_nan=False, **settings)
    # Most texts have neither; pairs are written as two escapes, and stay as they are.
    return text if text.isascii() and "\\ud" not in text else json.dumps(_valid(value), allow_nan=False, **settings)


def replace_lone_surrogates(json_text: str) -> str:
    """Replace halves of surrogate pairs in a JSON text that is read by question marks: no UTF-8 can hold them."""
    if "\\ud" not in json_text and "\\uD" not in json_text:  # a surrogate, whole pairs included
        return json_text
    return _ESCAPE.sub(lambda escape: "?" if escape[1] else escape[0], json_text)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Round a number for JSON; None for infinity and NaN."""
    return round(float(value), digits) if value is not None and math.isfinite(value) else None


def _valid(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, list | tuple) else value
