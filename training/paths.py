"""Folders of the checkout and of the data sets."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """Return the data folder: ``SMART_CAPTION_DATA``, or else ``../shared/data`` beside the checkout."""
    return Path(os.environ.get("SMART_CAPTION_DATA", CHECKOUT.parent / "shared" / "data"))


def find_below(path: str, data: Path) -> Path | None:
    """Find a file or folder below the checkout or below ``data``, or by its absolute path; None if there is none."""
    return next((folder / path for folder in (CHECKOUT, data) if (folder / path).exists()), None)
