"""Photographs that no model may learn from, by the tables in ``held_out/``.

``kept_aside_rooms.txt`` lists the rooms that are kept aside for measuring, ``near_duplicates.csv`` the photographs that
show the same as a photograph of a dev, test or benchmark set (``python -m recipes.near_duplicates`` found them).
"""

import csv
from functools import cache
from pathlib import Path

KEPT_ASIDE_ROOMS = Path(__file__).parent / "held_out" / "kept_aside_rooms.txt"
"""File names of photographs of nyu_rooms, one a line."""
NEAR_DUPLICATES = Path(__file__).parent / "held_out" / "near_duplicates.csv"
"""Columns ``photograph`` and ``measured``, each ``<data folder>/<file name>``, and ``distance``."""


@cache
def kept_aside_rooms() -> tuple[str, ...]:
    """Read the file names of the photographs of ``nyu_rooms`` that are kept aside for measuring."""
    return tuple(KEPT_ASIDE_ROOMS.read_text(encoding="utf-8").split())


@cache
def excluded_photographs(folder: str) -> frozenset[str]:
    """Collect the photographs of a data folder that no model may learn from.
    ``folder``: name of the data folder, such as ``flickr8k``.

    Returns:
        File names: those kept aside, and near duplicates of photographs of dev, test and benchmark sets.
    """
    with NEAR_DUPLICATES.open(encoding="utf-8", newline="") as stream:
        duplicates = [row["photograph"].partition("/") for row in csv.DictReader(stream)]
    kept_aside = kept_aside_rooms() if folder == "nyu_rooms" else ()
    return frozenset(kept_aside) | {name for origin, _, name in duplicates if origin == folder}
