"""What was found, as a program reads it and as a person does: JSON, a line, pictures, an HTML page."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smart_caption_ros.caption_log.logged_caption import LoggedCaption, LoggedPose
from smart_caption_ros.caption_log.search import Match
from smart_caption_ros.caption_log.times import iso_utc, local_time
from smart_caption_ros.files import write_bytes_atomically
from smart_caption_ros.viewing.html_page import render_page

_TEMPLATE = Path(__file__).resolve().parent / "templates" / "log_page.html"


def to_json(row: LoggedCaption, picture: Path | None = None) -> dict[str, Any]:
    """Return a row as a JSON object.

    Args:
        row: the row.
        picture: file of its picture, if that was written.
    """
    return {
        "id": row.id,
        "time": iso_utc(row.time_ns),
        "stamp_ns": row.stamp_ns,
        "wall_time_ns": row.wall_time_ns,
        "robot": row.robot,
        "camera": row.camera,
        "frame_id": row.frame_id,
        "text": row.text,
        "score": row.score,
        "status": row.status,
        "model": row.model,
        "objects": [{"class": o.class_name, "score": o.score, "box_xyxy": list(o.box_xyxy)} for o in row.objects],
        "nouns": [vars(noun) for noun in row.nouns],
        "coverage": row.coverage,
        "confidence": row.confidence,
        "calibrated_confidence": row.calibrated_confidence,
        "image_size": None if row.image_size is None else list(row.image_size),
        "pose": None
        if row.pose is None
        else {
            "frame_id": row.pose.frame_id,
            "position": list(row.pose.position),
            "orientation": list(row.pose.orientation),
        },
        "picture": None if picture is None else str(picture),
    }


def place_of(pose: LoggedPose) -> str:
    """Return a position for a person: "map 1.20, 3.40, 0.00"."""
    return f"{pose.frame_id} {', '.join(f'{value:.2f}' for value in pose.position)}"


def line_of(row: LoggedCaption) -> str:
    """Return when and where, for a person."""
    where = f"  {place_of(row.pose)}" if row.pose is not None else ""
    return f"{local_time(row.time_ns)}  {row.camera} of {row.robot}{where}"


def objects_of(row: LoggedCaption) -> str:
    """Return the classes of the detected objects for a person: "wine glass, 2 chair"."""
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in counted_objects(row))


def counted_objects(row: LoggedCaption) -> list[tuple[str, int]]:
    """Return the classes of the detected objects and how many there are of each."""
    return list(Counter(item.class_name for item in row.objects).items())


def write_picture_of(row: LoggedCaption, folder: Path) -> Path | None:
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


def log_page(title: str, source: str, rows: Sequence[LoggedCaption], matches: Sequence[Match]) -> str:
    """Render what was found as one HTML file without references to others.

    Args:
        title: heading.
        source: what was searched.
        rows: with their pictures.
        matches: why each of them was found.
    """
    pictures = ["" if row.picture is None else base64.b64encode(row.picture).decode("ascii") for row in rows]
    return render_page(
        _TEMPLATE,
        {"iso": iso_utc, "local": local_time, "place": place_of, "objects": counted_objects},
        title=title,
        source=source,
        entries=list(zip(rows, pictures, matches, strict=True)),
    )
