"""Write the files of :mod:`training.data.noun_evidence`.

FOLDER/coco_photographs.json   COCO's 80 classes: people's and COCO's labels, and the words of people's captions
FOLDER/rooms.json              photographs of ``python -m recipes.rooms``: two teacher networks and people's texts
FOLDER/nyu_rooms.json          those of ``nyu_rooms`` among them, by file name, as ``recipes.caption_sets`` names them
FOLDER/teachers/               what the teacher networks found, to continue a run that was stopped
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from tqdm import tqdm

from recipes.caption_sets.described_rooms import SENTENCES
from recipes.compact_json import json_bytes
from recipes.rooms.content_cache import find_contents
from recipes.rooms.evidence import Evidence, collect_evidence
from recipes.rooms.kept_aside import number_of, rooms_by_number
from recipes.rooms.photographs import COCO, NYU, Photograph, RoomsData
from recipes.rooms.places import ROOM_NOUNS, ROOMS
from recipes.rooms.sources import CaptionWriter
from recipes.rooms.supported_nouns import CLASSES_OF
from recipes.teachers.image_content import ContentTeacher
from smart_caption_ros.files import write_bytes_atomically
from training.data.coco_photographs import CocoPhotographs
from training.data.inflection import singular
from training.data.json_files import read_json_lines
from training.data.noun_evidence import VERSION, DecidedNouns, NounEvidence
from training.data.tokenizer import tokenize
from training.errors import DataError
from training.evaluation.metrics.chair import Synonyms

LABELLED, ALL_ROOMS = "coco_photographs", "rooms"
"""Names of files, beside ``nyu_rooms``."""
_AMBIGUOUS = frozenset({"bar", "bow", "fan", "hood", "island", "light", "orange", "range", "seat", "tie", "tile"})
"""Nouns that are also something else: an orange wall, a light blue shirt, a window seat."""
_BACKGROUND = frozenset({"ceiling", "floor", "furniture", "room", "wall"})


@dataclass(frozen=True)
class Report:
    """The evidence, by file and image id."""

    files: Mapping[str, Mapping[str, NounEvidence]]

    def table(self) -> Table:
        """Count photographs and nouns: one row per file."""
        table = Table("file", "photographs", "nouns", "shown in a photograph", "possible in a photograph")
        for column in table.columns[1:]:
            column.justify = "right"
        for name, images in self.files.items():
            decided = next(iter(images.values())).decided
            shown, possible = (
                f"{sum(map(len, column)) / len(images):.1f}"
                for column in zip(*((known.shown, known.possible) for known in images.values()), strict=True)
            )
            table.add_row(f"{name}.json", str(len(images)), str(len(decided.object_of)), shown, possible)
        return table


def write_noun_evidence(data: Path, output: Path) -> Report:
    """Write the files.

    Args:
        data: folder of the data sets, of ``detectors/`` and ``lexicon/``.
        output: folder to write; existing files are replaced.

    Raises:
        DataError: data is missing or malformed.
        OSError: a file cannot be written.
    """
    labelled = _labelled(data)
    rooms = _rooms(data, output / "teachers")
    files = {
        LABELLED: labelled,
        ALL_ROOMS: {photograph.id: known for photograph, known in rooms.items()},
        NYU: {photograph.file: known for photograph, known in rooms.items() if photograph.origin == NYU},
    }
    for name, images in files.items():
        if not images:
            raise DataError(f"{data}: no photograph of {name} has objects that are known")
        output.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(output / f"{name}.json", _document(images))
    return Report(files)


def _document(images: Mapping[str, NounEvidence]) -> bytes:
    decided = next(iter(images.values())).decided
    return json_bytes(
        {
            "noun_evidence": VERSION,
            "nouns": dict(sorted(decided.object_of.items())),
            "background": sorted(decided.background),
            "images": {
                image: {"shown": sorted(known.shown), "possible": sorted(known.possible)}
                for image, known in images.items()
            },
        }
    )


def _labelled(data: Path) -> dict[str, NounEvidence]:
    """Collect the evidence for the train part of ``coco_photographs``."""
    synonyms = Synonyms.load(data / "lexicon" / "chair_synonyms.txt")
    decided = DecidedNouns(_without_ambiguous(synonyms.class_of), frozenset())
    found = {}
    for image, photograph in CocoPhotographs(data / LABELLED).photographs.items():
        if photograph.part != "train" or not photograph.objects:
            continue
        texts = (*photograph.sentences, *photograph.statements)
        words = [tokenize(text) for text in texts]
        classes = {*photograph.objects, *(name for text in words for name in synonyms.mentions(" ".join(text)))}
        said = {singular(word) for text in words for word in text if word.isalpha()}
        shown = {noun for noun, name in decided.object_of.items() if name in classes or noun in said}
        found[image] = NounEvidence(decided, frozenset(shown), frozenset())
    return found


def _rooms(data: Path, cache: Path) -> dict[Photograph, NounEvidence]:
    """Collect the evidence for the photographs inside buildings; COCO's have captions of people alone."""
    rooms = RoomsData.open(data)
    photographs = [photograph for photograph in rooms.photographs if photograph.origin != COCO]
    contents = find_contents(ContentTeacher(data / "detectors"), rooms, photographs, cache)
    writer, boxes = CaptionWriter(rooms), _named_boxes(data / NYU / SENTENCES)
    object_of = {noun: " ".join(sorted(classes)) or noun for noun, classes in CLASSES_OF.items()}
    object_of |= {**dict.fromkeys(ROOM_NOUNS, "place"), "room": "room"}
    decided = DecidedNouns(_without_ambiguous(object_of), _BACKGROUND)
    found = {}
    for photograph in tqdm(photographs, "people's texts", unit="photograph", mininterval=1):
        draft = writer.draft(photograph, contents[photograph.id])
        asked = {singular(noun) for noun in (*draft.facts.colours, *draft.facts.counts)}
        boxed = {singular(name) for name in boxes.get(photograph.file, ())}
        named = draft.evidence.named_by_people | ((asked | boxed) & CLASSES_OF.keys())
        evidence = collect_evidence(_scene(photograph), contents[photograph.id], named)
        if evidence.indoors:
            found[photograph] = _known(evidence, decided, place_is_known=bool(_scene(photograph)))
    return found


def _known(evidence: Evidence, decided: DecidedNouns, *, place_is_known: bool) -> NounEvidence:
    shown = {*evidence.certain, "room"}
    possible = set(evidence.nouns)
    if place_is_known:
        shown.update(evidence.rooms)
    else:
        possible |= ROOM_NOUNS
    nouns = decided.object_of.keys()
    return NounEvidence(decided, frozenset(nouns & shown), frozenset((nouns & possible) - shown))


def _without_ambiguous(object_of: Mapping[str, str]) -> dict[str, str]:
    return {noun: name for noun, name in object_of.items() if noun not in _AMBIGUOUS}


def _scene(photograph: Photograph) -> str:
    """Return the name of the place; those of ``nyu_rooms`` were named by one person."""
    scene = photograph.scene
    if photograph.origin == NYU:
        scene = rooms_by_number().get(number_of(photograph.file), "")
    return scene if scene in ROOMS or photograph.origin != NYU else ""


def _named_boxes(path: Path) -> dict[str, Collection[str]]:
    """Read the names of people's boxes, by the file name of the photograph.

    Raises:
        DataError: the file is missing or malformed.
    """
    try:
        return {
            entry["image"]: {str(box["name"]) for box in entry["boxes"] if box["name"]}
            for entry in read_json_lines(path)
        }
    except (KeyError, TypeError):
        raise DataError(f"{path}: an entry lacks its image or boxes") from None
