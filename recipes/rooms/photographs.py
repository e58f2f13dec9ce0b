"""The photographs to caption, with the texts that people wrote about them, and the captions of other photographs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, decode_image_bytes
from training.data.coco import read_captions
from training.data.held_out import excluded_photographs
from training.data.json_files import read_json_lines
from training.data.photographs import PhotographArchive
from training.errors import DataError

NYU, SCENES, COCO = "nyu_rooms", "scenes", "coco_val2017_captions"
EVALUATION_ONLY = "coco_mini"


@dataclass(frozen=True)
class Photograph:
    """A photograph and the texts that people wrote about it."""

    origin: str
    """Folder name of the data set that it is from."""
    file: str
    """File name within the data set."""
    scene: str = ""
    """Name of the place by the data set; empty where it has none."""
    captions: tuple[str, ...] = ()
    """Captions by people."""
    descriptions: tuple[str, ...] = ()
    """Sentences by people about details."""
    questions: tuple[tuple[str, str], ...] = ()
    """Pairs of a question and its answer."""

    @property
    def id(self) -> str:
        """Image id in the data set that is written."""
        return f"{self.origin}-{Path(self.file).stem}"

    @property
    def path(self) -> str:
        """Path below the folder of images."""
        return f"{self.origin}/{self.file}"


@dataclass(frozen=True)
class PoolCaption:
    """A caption that a person wrote for a photograph of COCO; it may also fit other photographs."""

    photograph_id: str
    """:attr:`Photograph.id` of COCO's photograph, whether or not it is among the photographs to caption."""
    text: str


@dataclass(frozen=True)
class RoomsData:
    """All photographs in a fixed order, and the captions to retrieve from."""

    folder: Path
    photographs: list[Photograph]
    pool: list[PoolCaption]

    @classmethod
    def open(cls, folder: Path) -> "RoomsData":
        """Read the data sets, without the photographs that no model may learn from (:mod:`training.data.held_out`).

        Args:
            folder: holds ``nyu_rooms/``, ``scenes/``, ``coco_val2017_captions/`` and ``coco_mini/``.

        Raises:
            DataError: a file is missing or malformed; names the file, the place and the reason.
        """
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder of data; give --data, or set SMART_CAPTION_DATA")
        withheld = _evaluation_images(folder)
        coco, pool = _coco(folder, withheld)
        photographs = [
            photograph
            for photograph in (*_nyu(folder), *_scenes(folder), *coco)
            if photograph.file not in excluded_photographs(photograph.origin)
        ]
        left = {photograph.id for photograph in coco} - {photograph.id for photograph in photographs}
        return cls(folder, photographs, [caption for caption in pool if caption.photograph_id not in left])

    def encoded(self, wanted: Sequence[Photograph]) -> Iterator[tuple[Photograph, bytes]]:
        """Read the files of photographs without decoding them.

        Raises:
            DataError: a file is missing.
        """
        archives = {origin: PhotographArchive(self.folder / origin / "images.zip") for origin in (NYU, SCENES)}
        for photograph in wanted:
            if photograph.origin != COCO:
                yield photograph, archives[photograph.origin].read_encoded(photograph.file)
                continue
            path = self.folder / COCO / "images" / photograph.file
            try:
                yield photograph, path.read_bytes()
            except OSError as error:
                raise DataError(f"{path} cannot be read: {error.strerror}") from None


def decode_photograph(photograph: Photograph, encoded: bytes) -> NDArray[np.uint8]:
    """Decode the file of a photograph to (H, W, 3) uint8 BGR.

    Raises:
        DataError: it is not an image.
    """
    try:
        return decode_image_bytes(encoded)
    except ImageError as error:
        raise DataError(f"{photograph.path}: {error}") from None


def _nyu(folder: Path) -> list[Photograph]:
    path = folder / NYU / "questions.jsonl"
    found = []
    for number, entry in enumerate(read_json_lines(path), 1):
        where = f"{path}, entry {number}"
        asked = entry.get("questions")
        if not isinstance(asked, list) or not all(isinstance(pair, dict) for pair in asked):
            raise DataError(f"{where}: questions is missing or no list of objects")
        pairs = tuple((_text(where, pair, "question"), _text(where, pair, "answer")) for pair in asked)
        found.append(Photograph(NYU, _text(where, entry, "file"), questions=pairs))
    return found


def _scenes(folder: Path) -> list[Photograph]:
    path = folder / SCENES / "scenes.jsonl"
    found = []
    for number, entry in enumerate(read_json_lines(path), 1):
        where = f"{path}, entry {number}"
        found.append(
            Photograph(
                SCENES,
                _text(where, entry, "file"),
                scene=_text(where, entry, "scene"),
                captions=_texts(where, entry, "captions"),
                descriptions=_texts(where, entry, "descriptions"),
            )
        )
    return found


def _coco(folder: Path, withheld: set[str]) -> tuple[list[Photograph], list[PoolCaption]]:
    annotations = read_captions(folder / COCO / "captions_val2017.json")
    images = folder / COCO / "images"
    if not images.is_dir():
        raise DataError(f"{images}: no such folder")
    photographs = [
        Photograph(COCO, annotations.file_names.get(image, f"{image}.jpg"), captions=tuple(texts))
        for image, texts in annotations.captions.items()
        if image not in withheld
    ]
    pool = [PoolCaption(photograph.id, text) for photograph in photographs for text in photograph.captions]
    present = [photograph for photograph in photographs if (images / photograph.file).is_file()]
    return sorted(present, key=lambda photograph: photograph.file), pool


def _evaluation_images(folder: Path) -> set[str]:
    """Collect COCO's ids of the photographs that are for evaluation only: no text about them may be used."""
    paths = sorted((folder / EVALUATION_ONLY).glob("captions_*.json"))
    if not paths:
        raise DataError(f"{folder / EVALUATION_ONLY}: no captions_*.json; they say which photographs to leave out")
    found: set[str] = set()
    for path in paths:
        annotations = read_captions(path)
        found |= annotations.captions.keys() | annotations.file_names.keys()
    return found


def _text(where: str, entry: dict[str, Any], key: str) -> str:
    if not isinstance(value := entry.get(key), str) or not value.strip():
        raise DataError(f"{where}: {key} is missing or no text")
    return value


def _texts(where: str, entry: dict[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"{where}: {key} is missing or no list of texts")
    return tuple(value)
