"""The result on disk: COCO's captions, in two splits, and the photographs.

FOLDER/captions_train.json, captions_dev.json   COCO's format; annotations have ``source``, images have ``origin``
FOLDER/images/nyu_rooms/image3.jpg              photographs as they were in the data
FOLDER/teachers/                                what the teachers saw, to go on after a kill
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from tqdm import tqdm

from training.datagen.compact_json import json_bytes
from training.datagen.rooms.errors import RoomsError
from training.datagen.rooms.files import write
from training.datagen.rooms.photographs import Photograph, RoomsData, decoded
from training.datagen.rooms.sources import SOURCES, Captioned, Writer, held_out
from training.datagen.rooms.teachers import Teachers

SPLITS = ("train", "dev")
DEV_PHOTOGRAPHS = 100


@dataclass(frozen=True)
class Report:
    """What was written."""

    splits: dict[str, list[Captioned]]
    without: int
    """Photographs that no source has anything to say about."""

    def table(self) -> Table:
        """A row a source; a photograph counts with its first, best source."""
        table = Table("source", *(f"{split} {what}" for split in SPLITS for what in ("photographs", "captions")))
        for column in table.columns[1:]:
            column.justify = "right"
        columns = []
        for split in SPLITS:
            best = Counter(each.captions[0][0] for each in self.splits[split])
            columns += [best, Counter(source for each in self.splits[split] for source, _ in each.captions)]
        for source in SOURCES:
            table.add_row(source, *(str(column[source]) for column in columns))
        table.add_section()
        table.add_row("all", *(str(column.total()) for column in columns))
        return table


def make(data: Path, output: Path, dev: int = DEV_PHOTOGRAPHS) -> Report:
    """Caption all photographs of the data and write the data set.

    Args:
        data: folder of the data sets and of ``detectors/``.
        output: where it goes; what is there is brought up to date.
        dev: how many photographs are held out.

    Raises:
        RoomsError: data is missing or malformed, or the folder cannot be written.
    """
    rooms = RoomsData.open(data)
    teachers = Teachers(data / "detectors", output / "teachers")
    seen = teachers.look(rooms, rooms.photographs)
    writer = Writer(rooms)
    bar = tqdm(rooms.photographs, "sentences", unit="photograph", mininterval=1)
    everything = [writer.captions(photograph, seen[photograph.id]) for photograph in bar]
    captioned = [each for each in everything if each.captions]
    chosen = held_out(captioned, dev)
    splits = {
        "train": [each for each in captioned if each.photograph.id not in chosen],
        "dev": [each.by_people() for each in captioned if each.photograph.id in chosen],
    }
    if not all(splits.values()):
        raise RoomsError(
            f"{data}: {len(captioned)} photographs have captions, and {len(chosen)} of them go to dev: nothing is left "
            "for one of the splits; give more photographs or another --dev"
        )
    sizes = _write_photographs(rooms, [each.photograph for each in captioned], output / "images")
    number = 0
    for split in SPLITS:
        write(output / f"captions_{split}.json", json_bytes(_document(splits[split], sizes, number)))
        number += sum(len(each.captions) for each in splits[split])
    return Report(splits, len(everything) - len(captioned))


def _write_photographs(rooms: RoomsData, photographs: Sequence[Photograph], folder: Path) -> dict[str, tuple[int, int]]:
    sizes = {}
    with tqdm(rooms.encoded(photographs), "photographs", len(photographs), mininterval=1) as bar:
        for photograph, encoded in bar:
            path = folder / photograph.path
            if not path.is_file() or path.read_bytes() != encoded:
                write(path, encoded)
            height, width = decoded(photograph, encoded).shape[:2]
            sizes[photograph.id] = width, height
    return sizes


def _document(captioned: Sequence[Captioned], sizes: dict[str, tuple[int, int]], first: int) -> dict[str, object]:
    images = []
    annotations: list[dict[str, object]] = []
    for each in captioned:
        photograph = each.photograph
        width, height = sizes[photograph.id]
        images.append(
            {
                "id": photograph.id,
                "file_name": photograph.path,
                "width": width,
                "height": height,
                "origin": photograph.origin,
                "scene": photograph.scene,
            }
        )
        for source, sentence in each.captions:
            annotations.append(
                {"id": first + len(annotations), "image_id": photograph.id, "caption": sentence, "source": source}
            )
    return {"images": images, "annotations": annotations}
