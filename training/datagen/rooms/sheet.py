"""Contact sheets of photographs with a sentence each, to judge by eye how many sentences are true."""

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, read_image
from smart_caption_ros.viewing.text import label, printable, width_of, wrapped
from training.arguments import positive
from training.datagen.compact_json import json_bytes
from training.datagen.rooms.errors import RoomsError
from training.datagen.rooms.files import read_json, write

COLUMNS, ROWS = 4, 3
_CELL_PX, _TEXT_PX, _LINES = 400, 20, 4
_INK, _PAPER = (20, 20, 20), (255, 255, 255)


@dataclass(frozen=True)
class Pair:
    """A photograph and one of its sentences."""

    file: str
    source: str
    sentence: str


def draw_pairs(folder: Path, wanted: int, seed: int, source: str | None = None) -> list[Pair]:
    """Pairs of the training split, every annotation with the same chance.

    Args:
        folder: as ``python -m training.rooms`` wrote it.
        wanted: how many.
        seed: the same draws the same.
        source: only of this one; None for all as they are in the data.

    Raises:
        RoomsError: the folder has no such captions.
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
        raise RoomsError(f"{path}: not written by python -m training.rooms ({error} is missing)") from None
    if not pairs:
        raise RoomsError(f"{path}: no caption of source {source}")
    return random.Random(seed).sample(pairs, min(wanted, len(pairs)))


def cell(image_bgr: NDArray[np.uint8], number: int, pair: Pair) -> NDArray[np.uint8]:
    """A photograph with its number, source and sentence beneath, (H, 400, 3) uint8 BGR."""
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
    """Twelve pairs a PNG, and ``pairs.json`` with all of them in the order of their numbers, from 1.

    Raises:
        RoomsError: a photograph is missing, or a sheet cannot be written.
    """
    written = []
    each = COLUMNS * ROWS
    write(output / "pairs.json", json_bytes([vars(pair) for pair in pairs]))
    for start in range(0, len(pairs), each):
        cells = []
        for number, pair in enumerate(pairs[start : start + each], start + 1):
            path = folder / "images" / pair.file
            try:
                cells.append(cell(read_image(path), number, pair))
            except ImageError as error:
                raise RoomsError(f"{path}: {error}") from None
        cells += [np.full_like(cells[0], 255)] * (-len(cells) % COLUMNS)
        rows = [np.hstack(cells[row : row + COLUMNS]) for row in range(0, len(cells), COLUMNS)]
        path = output / f"sheet_{start // each + 1:02d}.png"
        write(path, cv2.imencode(".png", np.vstack(rows))[1].tobytes())
        written.append(path)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training.datagen.rooms.sheet", description=__doc__)
    parser.add_argument("folder", type=Path, help="as python -m training.rooms wrote it")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the sheets")
    parser.add_argument("--pairs", type=positive, default=100, help="how many sentences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other pairs (default: %(default)s)")
    parser.add_argument("--source", help="only sentences of this source")
    arguments = parser.parse_args()
    try:
        pairs = draw_pairs(arguments.folder, arguments.pairs, arguments.seed, arguments.source)
        for path in write_sheets(arguments.folder, arguments.output, pairs):
            print(path)
    except RoomsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
