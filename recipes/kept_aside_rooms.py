"""Write the rooms that are kept aside for measuring, with the objects that people name in them.

    python -m recipes.kept_aside_rooms -o FOLDER

The 100 photographs of ``nyu_rooms`` that no model has learned from (:mod:`training.data.held_out`), and
``FOLDER/instances.json`` in COCO's format: the objects of people's answers (DAQUAR) and boxes (SUN-SPOT). Measure a
bundle with ``smart-caption coverage coco FOLDER/instances.json --images FOLDER/images`` and ``python -m
training.evaluate --images FOLDER/images``.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from recipes.rooms.photographs import NYU, Photograph, RoomsData, decode_photograph
from recipes.rooms.questions import extract_facts
from recipes.rooms.words import frequent_words
from smart_caption_ros.files import write_bytes_atomically, write_text_atomically
from training.command_line import DataFolderOption, run_command
from training.data.held_out import kept_aside_rooms
from training.data.json_files import read_json_lines
from training.errors import DataError

_MIN_USES_OF_WORDS = 3


def objects_of_rooms(data: Path, rooms: Iterable[str]) -> dict[str, list[tuple[str, list[float]]]]:
    """Collect the objects that people name in rooms.

    Args:
        data: folder with ``nyu_rooms/``.
        rooms: their file names.

    Returns:
        For each file name the names of objects with their boxes, x, y, width and height as shares of the image. The
        box of an object that is named without one is the whole image.

    Raises:
        DataError: a file is missing or malformed.
    """
    found: dict[str, list[tuple[str, list[float]]]] = {file: [] for file in rooms}
    sentences, questions = data / NYU / "spatial_sentences.jsonl", data / NYU / "questions.jsonl"
    try:
        for entry in read_json_lines(sentences):
            if entry["image"] in found:
                found[entry["image"]] += [
                    (box["name"], [float(length) for length in box["box"]]) for box in entry["boxes"] if box["name"]
                ]
        asked = {
            entry["file"]: [(str(pair["question"]), str(pair["answer"])) for pair in entry["questions"]]
            for entry in read_json_lines(questions)
        }
        texts = (text.replace("_", " ") for pairs in asked.values() for pair in pairs for text in pair)
        known = frequent_words(texts, _MIN_USES_OF_WORDS)
        for file, own in found.items():
            if file in asked:
                facts = extract_facts(asked[file], known)
                named = {name for name, _ in own}
                for noun in dict.fromkeys((*facts.nouns, *facts.colours, *facts.counts)):
                    if noun not in named:
                        own.append((noun, [0.0, 0.0, 1.0, 1.0]))
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{sentences} or {questions}: an entry lacks its image, boxes or questions") from None
    return found


def as_instances(objects: Mapping[str, list[tuple[str, list[float]]]], sizes: Mapping[str, tuple[int, int]]) -> str:
    """Return COCO's instance file of the objects.

    Args:
        objects: as :func:`objects_of_rooms` returns them.
        sizes: width and height in pixels of each image.
    """
    names = sorted({name for own in objects.values() for name, _ in own})
    categories = {name: number for number, name in enumerate(names, 1)}
    images = []
    annotations: list[dict[str, Any]] = []
    for number, (file, own) in enumerate(objects.items(), 1):
        width, height = sizes[file]
        images.append({"id": number, "file_name": file, "width": width, "height": height})
        for name, (x, y, w, h) in own:
            box = [round(length, 1) for length in (x * width, y * height, w * width, h * height)]
            annotation = {"image_id": number, "category_id": categories[name], "bbox": box, "iscrowd": 0}
            annotations.append({"id": len(annotations) + 1, **annotation, "area": round(box[2] * box[3], 1)})
    listed = [{"id": number, "name": name} for name, number in categories.items()]
    return json.dumps({"categories": listed, "images": images, "annotations": annotations})


def write_rooms(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder to write.")],
    data: DataFolderOption,
) -> None:
    """Write the rooms that are kept aside for measuring, with the objects that people name in them."""
    objects = objects_of_rooms(data, kept_aside_rooms())
    images = output / "images"
    images.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for photograph, encoded in RoomsData(data, [], []).encoded([Photograph(NYU, file) for file in objects]):
        height, width = decode_photograph(photograph, encoded).shape[:2]
        sizes[photograph.file] = width, height
        write_bytes_atomically(images / photograph.file, encoded)
    write_text_atomically(output / "instances.json", as_instances(objects, sizes))


def main() -> int:
    return run_command(write_rooms, "python -m recipes.kept_aside_rooms", (DataError, OSError))


if __name__ == "__main__":
    sys.exit(main())
