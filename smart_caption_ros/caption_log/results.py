"""What was found, as a program reads it and as a person does: JSON, a line, pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smart_caption_ros.caption_log.row import LogRow
from smart_caption_ros.caption_log.times import iso_utc, local_time
from smart_caption_ros.files import write_bytes_atomically


def to_json(row: LogRow, picture: Path | None = None) -> dict[str, Any]:
    """Return the JSON of a row: that of its record, with its id, its time and the file of its picture.

    Args:
        picture: file of its picture, if that was written.
    """
    file = None if picture is None else str(picture)
    return {"id": row.id, "time": iso_utc(row.time_ns), **row.values, "picture": file}


def place_of(pose: Mapping[str, Any]) -> str:
    """Return a position for a person: "map 1.20, 3.40, 0.00"."""
    return f"{pose['frame_id']} {', '.join(f'{value:.2f}' for value in pose['position'])}"


def line_of(row: LogRow) -> str:
    """Return when and where, for a person."""
    where = f"  {place_of(row.pose)}" if row.pose is not None else ""
    return f"{local_time(row.time_ns)}  {row.camera} of {row.robot}{where}"


def objects_of(row: LogRow) -> str:
    """Return the classes of the detected objects for a person: "wine glass, 2 chair"."""
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in row.classes.items())


def write_picture_of(row: LogRow, folder: Path) -> Path | None:
    """Write the picture of a row as `<id>.jpg` into a folder, and return its path; None where there is none.

    Raises:
        OSError: it cannot be written.
    """
    if row.picture is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row.id}.jpg"
    write_bytes_atomically(path, row.picture)
    return path
