"""The log as a CSV file, and back: all of it, exactly."""

from __future__ import annotations

import base64
import binascii
import csv
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from smart_caption_ros.caption_log.errors import CaptionLogError
from smart_caption_ros.caption_log.logged_caption import ADDED_COLUMNS, COLUMNS, LoggedCaption
from smart_caption_ros.caption_log.store import CaptionLog
from smart_caption_ros.caption_log.times import iso_utc
from smart_caption_ros.files import replaced_atomically, write_bytes_atomically
from smart_caption_ros.text import shortened

TIME, PICTURE, PICTURE_FILE = "time", "picture_base64", "picture_file"
"""Columns beside those of the database: the time for a person, and the picture in the file or beside it."""

MAX_PICTURE_BYTES = 4 << 20
_ERRORS = "surrogateescape"  # names of picture files may have bytes that are not UTF-8
_JPEG_START, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_ROWS_AT_ONCE = 1000
_POSE = ("pose_frame", "x", "y", "z", "qx", "qy", "qz", "qw")


def export_csv(rows: Iterable[LoggedCaption], path: Path, pictures: Path | None = None) -> int:
    """Write rows as a CSV file, whole or not at all.

    Args:
        rows: from a log.
        path: the file.
        pictures: folder for the pictures, as `<id>.jpg`; None writes them into the file in base64.

    Returns:
        The number of rows.

    Raises:
        OSError: a file cannot be written.
    """
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    count = 0
    with (
        replaced_atomically(path) as unfinished,
        unfinished.open("w", encoding="utf-8", errors=_ERRORS, newline="") as stream,
    ):
        writer = csv.writer(stream)
        writer.writerow([TIME, *COLUMNS, PICTURE if pictures is None else PICTURE_FILE])
        for row in rows:
            writer.writerow([iso_utc(row.time_ns), *map(_cell, row.values()), _picture_cell(row, path, pictures)])
            count += 1
    return count


def import_csv(path: Path, log_path: Path, pictures: Path | None = None) -> tuple[int, int]:
    """Write the rows of a CSV file of :func:`export_csv` into a log.

    A row that the log has already is left out. All rows are checked before the log is opened, or created.

    Args:
        path: the file.
        log_path: the log.
        pictures: folder of the pictures, if it is not below that of the file.

    Returns:
        The number of rows written, and of those left out.

    Raises:
        CaptionLogError: a line is malformed, and nothing was written; or the log cannot be written, and the rows before
            are.
        OSError: a file cannot be read.
    """
    for _ in _read(path, pictures):
        pass
    written = present = 0
    rows = _read(path, pictures)
    with CaptionLog(log_path) as log:
        while chunk := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            more, again = log.add(chunk)
            written, present = written + more, present + again
    return written, present


def _cell(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _picture_cell(row: LoggedCaption, path: Path, pictures: Path | None) -> str:
    if row.picture is None:
        return ""
    if pictures is None:
        return base64.b64encode(row.picture).decode("ascii")
    file = pictures / f"{row.id}.jpg"
    write_bytes_atomically(file, row.picture)
    return os.path.relpath(file, path.parent)


def _read(path: Path, pictures: Path | None) -> Iterator[LoggedCaption]:
    csv.field_size_limit(2 * MAX_PICTURE_BYTES)
    with path.open(encoding="utf-8-sig", errors=_ERRORS, newline="") as stream:
        reader = csv.DictReader(stream, strict=True)
        try:
            missing = [name for name in COLUMNS if name not in (*(reader.fieldnames or ()), *ADDED_COLUMNS)]
            if missing:
                raise ValueError(f"the columns {', '.join(missing)} are missing; it is no export of a caption log")
            for record in reader:
                yield _row(record, path.parent, pictures or path.parent)
        except (ValueError, csv.Error) as error:  # UnicodeDecodeError is a ValueError
            raise CaptionLogError(f"{path}, line {reader.line_num}: {shortened(str(error))}") from error


def _row(record: dict[str, str], folder: Path, pictures: Path) -> LoggedCaption:
    """Translate a line; raises ValueError for a malformed one."""
    if None in record or None in record.values():
        raise ValueError("the line has another number of columns than the first one")
    has_pose = any(record[name] for name in _POSE)
    values = [_value(name, record.get(name, ""), has_pose) for name in COLUMNS]
    return LoggedCaption.from_values(values, _picture(record, folder, pictures))


def _value(column: str, cell: str, has_pose: bool) -> str | int | float | None:
    if column in ("id", "stamp_ns", "wall_time_ns"):
        return _integer(column, cell)
    if column in ("score", "coverage", "confidence", "calibrated_confidence"):
        return float(cell) if cell else None
    if column in ("image_width", "image_height"):
        return _integer(column, cell) if cell else None
    if column in _POSE and not has_pose:
        return None
    return float(cell) if column in _POSE[1:] else cell


def _integer(name: str, cell: str) -> int:
    value = int(cell)
    if not 0 <= value < 2**63:
        raise ValueError(f"{name} is not between 0 and 2^63: {shortened(cell, 40)}")
    return value


def _picture(record: dict[str, str], folder: Path, pictures: Path) -> bytes | None:
    """Return the picture of a line.

    Args:
        record: the line.
        folder: the one to which the names of picture files are relative.
        pictures: a further one in which they may be. The file may be from anybody, and must not name others.
    """
    if cell := record.get(PICTURE):
        try:
            data = base64.b64decode(cell, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{PICTURE} is not base64: {error}") from error
        source = PICTURE
    elif cell := record.get(PICTURE_FILE):
        source = cell
        file = (folder / cell).resolve()
        if not any(file.is_relative_to(allowed.resolve()) for allowed in (folder, pictures)):
            raise ValueError(
                f"{cell} is not in the folder of the file: name the folder of the pictures with --pictures"
            )
        if file.exists() and not file.is_file():
            raise ValueError(f"{cell} is not a file")
        if file.is_file() and file.stat().st_size > MAX_PICTURE_BYTES:
            raise ValueError(f"{cell} is larger than {MAX_PICTURE_BYTES} bytes")
        data = file.read_bytes()
    else:
        return None
    if not (data.startswith(_JPEG_START) and data.endswith(_JPEG_END)):
        raise ValueError(f"{source} is not a whole JPEG picture")
    return data
