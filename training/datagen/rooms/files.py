"""Reading and writing files, whole or not at all."""

import json
from pathlib import Path
from typing import Any

from smart_caption_ros.files import sha256_of, write_bytes_atomically
from training.datagen.rooms.errors import RoomsError


def read_json(path: Path) -> Any:
    """
    Raises:
        RoomsError: the file is missing or no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RoomsError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RoomsError(f"{path} is not JSON ({error})") from None


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file, one a line; empty lines do not count.

    Raises:
        RoomsError: the file is missing, or a line holds no JSON object; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RoomsError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise RoomsError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(entry, dict):
            raise RoomsError(f"{path}, line {number}: expected an object, {{...}}")
        entries.append(entry)
    return entries


def write(path: Path, data: bytes) -> None:
    """Whole, or not at all; makes the folder.

    Raises:
        RoomsError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, data)
    except OSError as error:
        raise RoomsError(f"{path} cannot be written: {error.strerror}") from None


def sha256(path: Path) -> str:
    """
    Raises:
        RoomsError: the file cannot be read.
    """
    try:
        return sha256_of(path)
    except OSError as error:
        raise RoomsError(f"{path} cannot be read: {error.strerror}") from None
