"""Write contact sheets of photographs with one caption each: ``python -m recipes.rooms.sheet``."""

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
import typer
from numpy.typing import NDArray

from recipes.compact_json import json_bytes
from smart_caption_ros.files import write_bytes_atomically
from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.viewing.files import write_picture
from smart_caption_ros.viewing.text import label, printable, width_of, wrapped
from training.command_line import run_command
from training.data.json_files import read_json
from training.errors import DataError

COLUMNS, ROWS = 4, 3
_CELL_PX, _TEXT_PX, _LINES = 400, 20, 4
_INK, _PAPER = (20, 20, 20), (255, 255, 255)


@dataclass(frozen=True)
class Pair:
    """A photograph and one of its captions."""

    file: str
    """Path below the folder of images."""
    source: str
    sentence: str


def draw_pairs(folder: Path, wanted: int, seed: int, source: str | None = None) -> list[Pair]:
    """Draw captions of the training split, each with the same probability.

    Args:
        folder: data set that ``python -m recipes.rooms`` wrote.
        wanted: number of captions; fewer where the split has fewer.
        seed: seed of the draw.
        source: draw captions of this source only; None draws from all.

    Raises:
        DataError: the folder is no such data set, or has no such captions.
    """
    path = folder / "captions_train.json"
    document = read_json(path)
    try:
        files = {image["id"]: str(image["file_name"]) for image in document["images"]}
        pairs = [
            Pair(files[entry["image_id"]], str(entry["source"]), str(entry["caption"]))
            for entry in document["annotations"]
            if source in (None, entry["source"])
        ]
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: not written by python -m recipes.rooms ({error} is missing)") from None
    if not pairs:
        raise DataError(f"{path}: no caption of source {source}")
    return random.Random(seed).sample(pairs, min(wanted, len(pairs)))


def cell(image_bgr: NDArray[np.uint8], number: int, pair: Pair) -> NDArray[np.uint8]:
    """Draw a photograph with the pair's number, source and caption beneath it, (H, 400, 3) uint8 BGR."""
    scale = _CELL_PX / max(image_bgr.shape[:2])
    small = cv2.resize(image_bgr, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    line_px = round(1.5 * _TEXT_PX)
    paper = np.full((_CELL_PX + _LINES * line_px, _CELL_PX, 3), 255, np.uint8)
    paper[: small.shape[0], : small.shape[1]] = small
    words = printable(f"{number} [{pair.source}] {pair.sentence}").split()
    lines = wrapped(words, lambda word: width_of(word, _TEXT_PX), width_of(" ", _TEXT_PX), _CELL_PX - 20)
    for row, line in enumerate(lines[:_LINES]):
        text = label(" ".join(line), _TEXT_PX, _INK, _PAPER)[:line_px, :_CELL_PX]
        top = _CELL_PX + row * line_px
        paper[top : top + text.shape[0], : text.shape[1]] = text
    return paper


def write_sheets(folder: Path, output: Path, pairs: list[Pair]) -> list[Path]:
    """Write twelve pairs per PNG, and ``pairs.json`` with all of them in the order of their numbers, which start at 1.

    Args:
        folder: data set that ``python -m recipes.rooms`` wrote.
        output: folder of the sheets.
        pairs: as :func:`draw_pairs` returns them.

    Raises:
        DataError: a photograph is missing or not an image.
        OSError: a file cannot be written.
    """
    written = []
    per_sheet = COLUMNS * ROWS
    output.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(output / "pairs.json", json_bytes([vars(pair) for pair in pairs]))
    for start in range(0, len(pairs), per_sheet):
        cells = []
        for number, pair in enumerate(pairs[start : start + per_sheet], start + 1):
            path = folder / "images" / pair.file
            try:
                cells.append(cell(read_image(path), number, pair))
            except ImageError as error:
                raise DataError(f"{path}: {error}") from None
        cells += [np.full_like(cells[0], 255)] * (-len(cells) % COLUMNS)
        rows = [np.hstack(cells[row : row + COLUMNS]) for row in range(0, len(cells), COLUMNS)]
        path = output / f"sheet_{start // per_sheet + 1:02d}.png"
        write_picture(path, np.vstack(rows))
        written.append(path)
    return written


def sheet(
    folder: Annotated[Path, typer.Argument(help="Data set that python -m recipes.rooms wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the sheets.")],
    pairs: Annotated[int, typer.Option(min=1, help="Number of captions to draw.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    source: Annotated[str | None, typer.Option(help="Draw captions of this source only.")] = None,
) -> None:
    """Write contact sheets of photographs with one caption each, to judge by eye how many captions are true."""
    for path in write_sheets(folder, output, draw_pairs(folder, pairs, seed, source)):
        print(path)


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(sheet, "python -m recipes.rooms.sheet", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
