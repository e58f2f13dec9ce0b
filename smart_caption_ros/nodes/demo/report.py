"""The files that the demo writes: one line of JSON and one overlay per frame, and a contact sheet."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.json_text import json_text
from smart_caption_ros.viewing import ContactSheet, write_picture

CAPTIONS_FILE = "captions.jsonl"
OVERLAY_FOLDER = "overlays"
SHEET_FILE = "contact_sheet.png"

_SHEET_PICTURES = 16


class DemoReport:
    """Writes the files into one folder, where they replace those of an earlier demo."""

    def __init__(self, folder: Path) -> None:
        """Create the folder and delete the files of an earlier demo."""
        self.folder = folder
        self._overlays = folder / OVERLAY_FOLDER
        self._overlays.mkdir(parents=True, exist_ok=True)
        for old in [*self._overlays.glob("*.png"), folder / CAPTIONS_FILE, folder / SHEET_FILE]:
            old.unlink(missing_ok=True)
        self._lines = (folder / f"{CAPTIONS_FILE}.part").open("w", encoding="utf-8")
        self._sheet = ContactSheet(_SHEET_PICTURES)

    def add(self, index: int, name: str, record: dict[str, Any], overlay_bgr: NDArray[np.uint8]) -> None:
        """Write the line and the overlay, uint8 (H, W, 3) BGR, of a frame; files and sheet are ordered by its index."""
        self._lines.write(json_text(record) + "\n")
        self._lines.flush()
        write_picture(self._overlays / f"{index:04d}_{_file_name(name)}.png", overlay_bgr)
        self._sheet.add(index, overlay_bgr)

    def close(self) -> None:
        """Rename the file of lines to its final name and write the contact sheet."""
        self._lines.close()
        Path(self._lines.name).replace(self.folder / CAPTIONS_FILE)
        if len(self._sheet):
            write_picture(self.folder / SHEET_FILE, self._sheet.picture())


def _file_name(name: str) -> str:
    """Convert the name of a frame to a part of a file name, without its suffix."""
    return re.sub(r"[^\w.-]+", "_", re.sub(r"\.\w{1,5}$", "", name)).strip("._")[-80:] or "frame"
