"""Choose the rooms that are kept aside for measuring: ``python -m recipes.rooms.kept_aside``.

Photographs of NYU Depth v2 are numbered scene by scene, and the training list has whole scenes. So photographs with
consecutive numbers may show one room, and those of two runs of consecutive numbers do not.
"""

import csv
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from recipes.rooms.photographs import NYU
from smart_caption_ros.files import write_bytes_atomically
from training.command_line import DataFolderOption, run_command
from training.data.held_out import KEPT_ASIDE_ROOMS
from training.data.json_files import read_json_lines
from training.errors import DataError

WANTED, SEED = 100, 17
MAX_RUN = 16
"""Longest run that is kept aside; longer ones are of several rooms and would be too large a share of the measure."""
_SCENES = Path(__file__).parent / "nyu_scenes.csv"


@cache
def rooms_by_number() -> Mapping[int, str]:
    """Read the room that each photograph of ``nyu_rooms`` shows, by its number; empty where the kind is unclear.

    The data has no names of rooms: one person named them by eye (``nyu_scenes.csv``).
    """
    with _SCENES.open(encoding="utf-8", newline="") as stream:
        return {
            number: row["room"]
            for row in csv.DictReader(stream)
            for number in range(int(row["first"]), int(row["last"]) + 1)
        }


def number_of(file: str) -> int:
    """Return the number of a photograph of ``nyu_rooms``: 3 for ``image3.jpg``."""
    return int(Path(file).stem.removeprefix("image"))


def choose_kept_aside(files: Sequence[str], wanted: int, seed: int) -> list[str]:
    """Choose whole runs of consecutive photographs, of each kind of room about its share of all photographs.

    Args:
        files: file names of all photographs.
        wanted: number of photographs.
        seed: seed of the order in which runs are tried.

    Returns:
        ``wanted`` file names by number; fewer if no run is short enough for the rest.
    """
    runs = _runs(sorted(files, key=number_of))
    sizes = Counter(dict.fromkeys(map(_kind, runs), 0))
    for run in runs:
        sizes[_kind(run)] += len(run)
    order = [run for run in runs if len(run) <= MAX_RUN]
    random.Random(seed).shuffle(order)
    quotas = {kind: round(wanted * size / len(files)) for kind, size in sizes.items()}
    chosen: list[list[str]] = []
    for by_kind in (True, False):  # the second pass fills what the quotas leave
        for run in order:
            room = quotas[_kind(run)] if by_kind else wanted
            if run not in chosen and len(run) <= min(room, wanted - sum(map(len, chosen))):
                chosen.append(run)
                quotas[_kind(run)] -= len(run)
    return sorted((file for run in chosen for file in run), key=number_of)


def _runs(files: Sequence[str]) -> list[list[str]]:
    """Split file names, in the order of their numbers, where a number is left out."""
    runs = [[files[0]]]
    for before, file in pairwise(files):
        if number_of(file) != number_of(before) + 1:
            runs.append([])
        runs[-1].append(file)
    return runs


def _kind(run: Sequence[str]) -> str:
    return Counter(rooms_by_number().get(number_of(file), "") for file in run).most_common(1)[0][0]


def keep_aside(
    data: DataFolderOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="List to write.")] = KEPT_ASIDE_ROOMS,
    wanted: Annotated[int, typer.Option(min=1, help="Number of photographs.")] = WANTED,
    seed: Annotated[int, typer.Option(help="Seed of the choice.")] = SEED,
) -> None:
    """Choose the photographs of nyu_rooms that are kept aside for measuring, whole rooms of every kind."""
    files = [str(entry["file"]) for entry in read_json_lines(data / NYU / "questions.jsonl")]
    chosen = choose_kept_aside(files, wanted, seed)
    write_bytes_atomically(output, "".join(f"{file}\n" for file in chosen).encode())
    print(f"{len(chosen)} photographs of {len(_runs(chosen))} rooms are kept aside: {output}")


def main() -> int:
    """Run the command and return its exit status."""
    return run_command(keep_aside, "python -m recipes.rooms.kept_aside", (DataError,))


if __name__ == "__main__":
    sys.exit(main())
