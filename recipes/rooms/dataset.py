"""Make the data set: captions in COCO's format, in two splits, and the photographs.

FOLDER/captions_train.json, captions_dev.json   annotations have ``source``; images have ``origin`` and ``scene``
FOLDER/images/nyu_rooms/image3.jpg              photographs, copied from the data
FOLDER/teachers/                                what the teacher networks found, to continue a run that was stopped
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from tqdm import tqdm

from recipes.compact_json import json_bytes
from recipes.rooms.content_cache import find_contents
from recipes.rooms.photographs import Photograph, RoomsData, decode_photograph
from recipes.rooms.sources import SOURCES, CaptionedPhotograph, CaptionWriter, choose_held_out
from recipes.teachers.image_content import ContentTeacher
from smart_caption_ros.files import write_bytes_atomically
from training.errors import DataError

SPLITS = ("train", "dev")
DEV_PHOTOGRAPHS = 100
"""Default number of photographs in the dev split."""


@dataclass(frozen=True)
class Report:
    """Numbers of a data set."""

    splits: dict[str, list[CaptionedPhotograph]]
    """By name of the split."""
    uncaptioned: int
    """Photographs for which no source has a caption."""

    def table(self) -> Table:
        """Count photographs, by their best source, and captions: one row per source."""
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


def make_dataset(data: Path, output: Path, dev: int = DEV_PHOTOGRAPHS) -> Report:
    """Caption all photographs of the data and write the data set.

    Args:
        data: folder of the data sets and of ``detectors/``.
        output: folder to write; an existing data set is updated.
        dev: number of photographs to hold out.

    Raises:
        DataError: data is missing or malformed.
        OSError: a file is missing or cannot be written.
    """
    rooms = RoomsData.open(data)
    teacher = ContentTeacher(data / "detectors")
    contents = find_contents(teacher, rooms, rooms.photographs, output / "teachers")
    writer = CaptionWriter(rooms)
    bar = tqdm(rooms.photographs, "people's texts", unit="photograph", mininterval=1)
    drafts = [writer.draft(photograph, contents[photograph.id]) for photograph in bar]
    held_out = choose_held_out(drafts, dev)
    pool = writer.pool(rooms, held_out)
    remaining = [draft for draft in drafts if draft.captioned.photograph.id not in held_out]
    completed = [
        writer.complete(draft, pool) for draft in tqdm(remaining, "captions", unit="photograph", mininterval=1)
    ]
    splits = {
        "train": [each for each in completed if each.captions],
        "dev": [draft.captioned for draft in drafts if draft.captioned.photograph.id in held_out],
    }
    captioned = splits["train"] + splits["dev"]
    if not all(splits.values()):
        raise DataError(
            f"{data}: {len(captioned)} photographs have captions, and {len(held_out)} of them go to dev: nothing is "
            "left for one of the splits; give more photographs or another --dev"
        )
    sizes = _write_photographs(rooms, [each.photograph for each in captioned], output / "images")
    number = 0
    for split in SPLITS:
        document = _document(splits[split], sizes, number)
        write_bytes_atomically(output / f"captions_{split}.json", json_bytes(document))
        number += sum(len(each.captions) for each in splits[split])
    return Report(splits, len(rooms.photographs) - len(captioned))


def _write_photographs(rooms: RoomsData, photographs: Sequence[Photograph], folder: Path) -> dict[str, tuple[int, int]]:
    """Copy photographs that are not in the folder yet; return width and height by id."""
    sizes = {}
    with tqdm(rooms.encoded(photographs), "photographs", len(photographs), mininterval=1) as bar:
        for photograph, encoded in bar:
            path = folder / photograph.path
            if not path.is_file() or path.read_bytes() != encoded:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_bytes_atomically(path, encoded)
            height, width = decode_photograph(photograph, encoded).shape[:2]
            sizes[photograph.id] = width, height
    return sizes


def _document(
    captioned: Sequence[CaptionedPhotograph], sizes: dict[str, tuple[int, int]], first: int
) -> dict[str, object]:
    """Build the annotation file of a split, whose annotations are numbered from ``first``."""
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
