"""JSON files of data sets."""

import json
import re
from pathlib import Path
from typing import Any

from smart_caption_ros.json_text import replace_lone_surrogates
from smart_caption_ros.sources.source import SourceError


def read_json(path: Path, **hooks: Any) -> Any:
    """Read a JSON file; a lone half of a surrogate pair, which UTF-8 cannot encode, becomes a question mark.

    Raises SourceError if the file cannot be read or is not JSON.
    """
    try:
        return json.loads(replace_lone_surrogates(path.read_text(encoding="utf-8-sig")), **hooks)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise SourceError(f"{path} is not JSON: {error}") from None


def whole_number(value: Any) -> int | None:
    """Return a whole number in the spellings of different tools (7, 7.0, "7"); None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,18}\s*", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return None
    return int(value)
