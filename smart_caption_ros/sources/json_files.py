"""JSON files of data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from smart_caption_ros.sources.source import SourceError


def read_json(path: Path, **hooks: Any) -> Any:
    """Read a JSON file.

    Args:
        path: the file, UTF-8 with or without a byte order mark.
        hooks: arguments of :func:`json.loads`.

    Raises:
        SourceError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), **hooks)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise SourceError(f"{path} is not JSON: {error}") from None
