"""Read JSON and JSON Lines files.

Half a surrogate pair, which no UTF-8 can hold, becomes a question mark.
"""

import json
from pathlib import Path
from typing import Any

from smart_caption_ros.json_text import replace_lone_surrogates
from training.errors import DataError


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        DataError: the file is missing, unreadable or not JSON.
    """
    try:
        return json.loads(replace_lone_surrogates(path.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error})") from None


def read_json_object(path: Path, expected: str = "an object") -> dict[str, Any]:
    """Read a JSON file that has an object.
    ``expected``: of the error of one that has something else.

    Raises:
        DataError: as :func:`read_json`, or the file has something else.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected {expected}")
    return document


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a JSON Lines file, one per line; empty lines are skipped.

    Raises:
        DataError: the file is missing or unreadable, or a line holds no JSON object; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # text may hold other line ends, such as U+2028
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(replace_lone_surrogates(line))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(entry, dict):
            raise DataError(f"{path}, line {number}: expected an object, {{...}}")
        entries.append(entry)
    return entries
