"""Make the data set: captions in COCO's format, in two splits, and the photographs.

FOLDER/captions_train.json, captions_dev.json   annotations have ``source``; images have ``origin`` and ``scene``
FOLDER/images/nyu_rooms/image3.jpg              photographs, copied from the data
FOLDER/teachers/                                what the teacher networks found, to continue a run that was stopped
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table
from tqdm import tqdm

from recipes.image_content import ContentTeacher, ImageContent, content_from_json
from recipes.rooms.photographs import Photograph, RoomsData, decode_photograph
from recipes.rooms.sources import SOURCES, CaptionedPhotograph, CaptionWriter, choose_held_out
from smart_caption_ros.files import write_bytes_atomically
from training.data.json_files import read_json
from training.errors import DataError


def json_bytes(document: object) -> bytes:
    """Encode a document as one line of UTF-8 without spaces and without escaped letters."""
    return (json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


_FINGERPRINT = "teachers.json"


def find_contents(
    teacher: ContentTeacher, data: RoomsData, photographs: Sequence[Photograph], cache: Path
) -> dict[str, ImageContent]:
    """Read the contents of photographs from the cache, and find those that it lacks.

    Args:
        teacher: finds the contents.
        data: reads the photographs.
        photographs: the photographs.
        cache: folder of the files; contents by other teachers are deleted from it.

    Returns:
        Contents by the photographs' ids.

    Raises:
        DataError: a photograph or a file of the cache cannot be read.
        OSError: a file cannot be written.
    """
    fingerprint = cache / _FINGERPRINT
    if not fingerprint.is_file() or read_json(fingerprint) != teacher.fingerprint:
        for old in cache.glob("*/*.json"):
            old.unlink()
        cache.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(fingerprint, json_bytes(teacher.fingerprint))
    missing = [photograph for photograph in photographs if not _file(cache, photograph).is_file()]
    with tqdm(data.encoded(missing), "teachers", len(missing), unit="photograph", mininterval=1) as bar:
        for photograph, encoded in bar:
            content = teacher.find(decode_photograph(photograph, encoded))
            path = _file(cache, photograph)
            path.parent.mkdir(exist_ok=True)
            write_bytes_atomically(path, json_bytes(asdict(content)))
    return {photograph.id: _read(_file(cache, photograph)) for photograph in photographs}


def _file(cache: Path, photograph: Photograph) -> Path:
    return cache / photograph.origin / f"{Path(photograph.file).stem}.json"


def _read(path: Path) -> ImageContent:
    try:
        return content_from_json(read_json(path))
    except (KeyError, TypeError):
        raise DataError(f"{path} is damaged: delete it and start again") from None


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
            best = Counter(described.captions[0][0] for described in self.splits[split])
            columns += [best, Counter(source for described in self.splits[split] for source, _ in described.captions)]
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
        "train": [described for described in completed if described.captions],
        "dev": [draft.captioned for draft in drafts if draft.captioned.photograph.id in held_out],
    }
    captioned = splits["train"] + splits["dev"]
    if not all(splits.values()):
        raise DataError(
            f"{data}: {len(captioned)} photographs have captions, and {len(held_out)} of them go to dev: nothing is "
            "left for one of the splits; give more photographs or another --dev"
        )
    sizes = _write_photographs(rooms, [described.photograph for described in captioned], output / "images")
    number = 0
    for split in SPLITS:
        document = _document(splits[split], sizes, number)
        write_bytes_atomically(output / f"captions_{split}.json", json_bytes(document))
        number += sum(len(described.captions) for described in splits[split])
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
    for described in captioned:
        photograph = described.photograph
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
        for source, sentence in described.captions:
            annotations.append(
                {"id": first + len(annotations), "image_id": photograph.id, "caption": sentence, "source": source}
            )
    return {"images": images, "annotations": annotations}
