"""Words of the search index for what is no word of a caption: the camera, the robot, and the place on a grid.

With them a search by camera or place is one query of the index, which stops at the newest rows that match. The rows
found are compared exactly afterwards.
"""

from __future__ import annotations

import hashlib
import math

from smart_caption_ros.caption_log.logged_caption import LoggedCaption

CELL_SIZES_M = (1, 4, 16, 64, 256)
"""Sides of the squares of the grids, metres."""

_LARGEST_CELL_NUMBER = 10**9  # far from any robot; keeps the words short
_MAX_CELLS_A_SIDE = 6


def tags_of(row: LoggedCaption) -> str:
    """Return the tags of a row, separated by spaces."""
    tags = [camera_tag(row.camera), robot_tag(row.robot)]
    if row.pose is not None:
        x, y, _ = row.pose.position
        tags += [_cell_tag(size_m, _cell(x, size_m), _cell(y, size_m)) for size_m in CELL_SIZES_M]
    return " ".join(tags)


def camera_tag(camera: str) -> str:
    """Return the tag of a camera."""
    return f"c{_digest(camera)}"


def robot_tag(robot: str) -> str:
    """Return the tag of a robot."""
    return f"r{_digest(robot)}"


def cells_around(x: float, y: float, radius_m: float) -> list[str]:
    """Return the tags of the squares that cover a circle, on the finest grid that needs few of them.

    Returns:
        One or more tags; empty where the circle is too large for the grids.
    """
    for size_m in CELL_SIZES_M:
        left, right = _cell(x - radius_m, size_m), _cell(x + radius_m, size_m)
        bottom, top = _cell(y - radius_m, size_m), _cell(y + radius_m, size_m)
        if max(right - left, top - bottom) < _MAX_CELLS_A_SIDE:
            return [_cell_tag(size_m, i, j) for i in range(left, right + 1) for j in range(bottom, top + 1)]
    return []


def _cell(value: float, size_m: int) -> int:
    return max(-_LARGEST_CELL_NUMBER, min(_LARGEST_CELL_NUMBER, math.floor(value / size_m)))


def _cell_tag(size_m: int, i: int, j: int) -> str:
    # Letters and digits alone, with a digit at the end, so that the tokenizer neither splits nor stems it.
    return f"g{size_m}x{i}y{j}".replace("-", "n")


def _digest(name: str) -> str:
    return str(int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big"))
