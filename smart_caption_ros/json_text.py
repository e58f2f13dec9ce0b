"""Values as JSON that every reader takes: no infinity and no NaN, which JSON lacks and messages may hold."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any, **settings: Any) -> str:
    """Encode a value as JSON, with null in place of infinity and NaN.

    Args:
        value: dictionaries, lists, texts, numbers, booleans and None.
        settings: the keyword arguments of :func:`json.dumps`.
    """
    try:
        return json.dumps(value, allow_nan=False, **settings)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, **settings)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Round a number for JSON; None for infinity and NaN."""
    return round(float(value), digits) if value is not None and math.isfinite(value) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
