"""What no message of the caption node may hold, whatever arrives: numbers that are none, and control characters."""

import math
from collections.abc import Iterator
from typing import Any

MAY_BE_UNKNOWN = "calibrated_confidence"
"""The number of a caption that is NaN where its bundle has no table for it."""


def faults_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield the name and the value of each field of a message, and of the messages in it, that holds such.

    The header is the image's, unchanged.
    """
    if isinstance(value, float):
        if not math.isfinite(value) and name != MAY_BE_UNKNOWN:
            yield f"{name} is {value}"
    elif isinstance(value, str):
        if not value.isprintable():
            yield f"{name} is {value!r}"
    elif hasattr(value, "get_fields_and_field_types"):
        for field in value.get_fields_and_field_types():
            if field != "header":
                yield from faults_of(getattr(value, field), f"{name}.{field}" if name else field)
    elif not isinstance(value, bytes | int):
        for place, item in enumerate(value):
            yield from faults_of(item, f"{name}[{place}]")
