"""Write rows of the log as a CSV file and pictures."""

import base64
import csv
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from smart_caption_ros.caption_log.row import LogRow
from smart_caption_ros.caption_log.times import iso_utc
from smart_caption_ros.files import replaced_atomically, write_bytes_atomically
from smart_caption_ros.json_text import json_text


def place_of(pose: Mapping[str, Any]) -> str:
    """Return a position for a person: "map 1.20, 3.40, 0.00"."""
    return f"{pose['frame_id']} {', '.join(f'{value:.2f}' for value in pose['position'])}"


def write_picture_of(row: LogRow, folder: Path) -> Path | None:
    """Write the picture of a row as `<id>.jpg` into a folder and return its path; None if the row has none."""
    if row.picture is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row.id}.jpg"
    write_bytes_atomically(path, row.picture)
    return path


def export_csv(rows: Iterable[LogRow], path: Path, pictures: Path | None = None) -> int:
    """Write rows as a CSV file, atomically. Columns: id, time, the keys of the record (lists as JSON), picture.

    Args:
        pictures: folder for the pictures, `<id>.jpg`; None writes them into the CSV file in base64.

    Returns:
        The number of rows.
    """
    count = 0
    with (
        replaced_atomically(path) as unfinished,
        unfinished.open("w", encoding="utf-8", errors="surrogateescape", newline="") as stream,
    ):
        writer = csv.writer(stream)
        names: list[str] = []
        for row in rows:
            if not count:
                names = list(row.values)
                writer.writerow(["id", "time", *names, "picture_base64" if pictures is None else "picture_file"])
            if pictures is None:
                picture = base64.b64encode(row.picture or b"").decode("ascii")
            else:
                file = write_picture_of(row, pictures)
                picture = "" if file is None else os.path.relpath(file, path.parent)
            cells = [_cell(row.values.get(name)) for name in names]
            writer.writerow([row.id, iso_utc(row.time_ns), *cells, picture])
            count += 1
    return count


def _cell(value: object) -> object:
    return json_text(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value
