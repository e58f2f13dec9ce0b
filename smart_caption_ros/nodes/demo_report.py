"""What the demo leaves behind: a line of JSON and an overlay a frame, and one sheet of them all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.viewing import contact_sheet, write_png

CAPTIONS_FILE = "captions.jsonl"
OVERLAY_FOLDER = "overlays"
SHEET_FILE = "contact_sheet.png"

_SHEET_SIDE_PX = 960


class DemoReport:
    """Files in one folder; those of an earlier demo are replaced."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder and takes an earlier demo's files away.

        Raises:
            OSError: the folder cannot be made or written to.
        """
        self.folder = folder
        self._overlays = folder / OVERLAY_FOLDER
        self._overlays.mkdir(parents=True, exist_ok=True)
        for old in [*self._overlays.glob("*.png"), folder / CAPTIONS_FILE, folder / SHEET_FILE]:
            old.unlink(missing_ok=True)
        self._lines = (folder / f"{CAPTIONS_FILE}.part").open("w", encoding="utf-8")
        self._thumbnails: dict[int, NDArray[np.uint8]] = {}

    def add(self, index: int, name: str, record: dict[str, Any], overlay_bgr: NDArray[np.uint8]) -> None:
        """Writes a frame's line and overlay.

        Args:
            index: position of the frame; it names the overlay and orders the sheet.
            name: the frame's name.
            record: the line.
            overlay_bgr: uint8 HxWx3.
        """
        self._lines.write(json.dumps(record, allow_nan=False) + "\n")
        self._lines.flush()
        write_png(self._overlays / f"{index:04d}_{_file_name(name)}.png", overlay_bgr)
        scale = min(1.0, _SHEET_SIDE_PX / max(overlay_bgr.shape[:2]))
        size = [max(1, round(side * scale)) for side in overlay_bgr.shape[1::-1]]
        self._thumbnails[index] = np.asarray(cv2.resize(overlay_bgr, size, interpolation=cv2.INTER_AREA), np.uint8)

    def close(self) -> None:
        """Gives the lines their name and writes the sheet."""
        self._lines.close()
        Path(self._lines.name).replace(self.folder / CAPTIONS_FILE)
        if self._thumbnails:
            sheet_bgr = contact_sheet([self._thumbnails[index] for index in sorted(self._thumbnails)])
            write_png(self.folder / SHEET_FILE, sheet_bgr)


def _file_name(name: str) -> str:
    """A frame's name as part of a file name, without its extension."""
    return re.sub(r"[^\w.-]+", "_", re.sub(r"\.\w{1,5}$", "", name)).strip("._")[-80:] or "frame"
