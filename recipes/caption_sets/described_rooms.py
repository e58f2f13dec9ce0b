"""Captions for the photographs of ``nyu_rooms`` from people's sentences and answers about their things."""

from collections.abc import Collection
from pathlib import Path

from recipes.caption_sets.captions_file import CaptionedImage
from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.positions import all_positions
from recipes.caption_sets.room_captions import RoomWriter
from recipes.rooms.kept_aside import number_of, rooms_by_number
from recipes.rooms.photographs import NYU, Photograph
from recipes.rooms.questions import extract_facts
from training.data.json_files import read_json_lines
from training.errors import DataError

SENTENCES = "spatial_sentences.jsonl"


def captions_of_rooms(
    data: Path, photographs: Collection[Photograph], fluency: Fluency, known: Collection[str]
) -> list[CaptionedImage]:
    """Write the captions of rooms.

    Args:
        data: folder of the data sets.
        photographs: the rooms, with their questions.
        fluency: tells which captions read like people's.
        known: words that captions may use.

    Raises:
        DataError: the file of sentences is missing or malformed.
    """
    said = read_spatial_sentences(data / NYU / SENTENCES)
    found = []
    for photograph in photographs:
        facts = extract_facts(photograph.questions, known)
        positions = all_positions(said.get(photograph.file, ()), facts, known)
        room = rooms_by_number().get(number_of(photograph.file), "")
        captions = RoomWriter(facts, positions, room, fluency, photograph.file).captions()
        found.append(CaptionedImage(photograph.file, captions, indoor=True))
    return found


def read_spatial_sentences(path: Path) -> dict[str, list[str]]:
    """Read people's sentences about where things are, by the file name of the photograph.

    Raises:
        DataError: the file is missing or malformed.
    """
    found: dict[str, list[str]] = {}
    for number, entry in enumerate(read_json_lines(path), 1):
        try:
            found[entry["image"]] = [str(sentence["text"]) for sentence in entry["sentences"]]
        except (KeyError, TypeError):
            raise DataError(f"{path}, entry {number}: expected image and sentences, each with a text") from None
    return found
