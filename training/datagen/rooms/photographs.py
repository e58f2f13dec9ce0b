"""The photographs, and what people have written about each of them."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.imaging import ImageError, decode_image_bytes
from training.datagen.rooms.errors import RoomsError
from training.datagen.rooms.files import read_json, read_json_lines

NYU, SCENES, COCO = "nyu_rooms", "scenes", "coco_val2017_captions"
MEASURING_ONLY = "coco_mini"


@dataclass(frozen=True)
class Photograph:
    """One photograph with its human words."""

    origin: str
    """The data set it is from: the name of its folder."""
    file: str
    scene: str = ""
    """The name of the place; empty where nobody has named it."""
    captions: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    """Sentences about details."""
    questions: tuple[tuple[str, str], ...] = ()
    """Questions with their answers."""

    @property
    def id(self) -> str:
        return f"{self.origin}-{Path(self.file).stem}"

    @property
    def path(self) -> str:
        """Below the folder of images."""
        return f"{self.origin}/{self.file}"


@dataclass
class PooledCaption:
    """A human caption of some photograph of COCO, which may suit others."""

    image: str
    text: str


@dataclass
class RoomsData:
    """All photographs in a fixed order, and the captions to choose from."""

    folder: Path
    photographs: list[Photograph]
    pool: list[PooledCaption] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path) -> "RoomsData":
        """
        Args:
            folder: holds ``nyu_rooms/``, ``scenes/``, ``coco_val2017_captions/`` and ``coco_mini/``.

        Raises:
            RoomsError: a file is missing or malformed; names it, the place and the reason.
        """
        if not folder.is_dir():
            raise RoomsError(f"{folder}: no such folder of data; give --data, or set SMART_CAPTION_DATA")
        withheld = _measured_images(folder)
        own, pool = _coco(folder, withheld)
        return cls(folder, [*_nyu(folder), *_scenes(folder), *own], pool)

    def encoded(self, wanted: Sequence[Photograph]) -> Iterator[tuple[Photograph, bytes]]:
        """The files of photographs, as they are.

        Raises:
            RoomsError: one is missing.
        """
        with ExitStack() as stack:
            archives: dict[str, zipfile.ZipFile] = {}
            for photograph in wanted:
                yield photograph, self._read(photograph, archives, stack)

    def _read(self, photograph: Photograph, archives: dict[str, zipfile.ZipFile], stack: ExitStack) -> bytes:
        folder = self.folder / photograph.origin
        if photograph.origin == COCO:
            path = folder / "images" / photograph.file
            try:
                return path.read_bytes()
            except OSError as error:
                raise RoomsError(f"{path} cannot be read: {error.strerror}") from None
        path = folder / "images.zip"
        try:
            if photograph.origin not in archives:
                archives[photograph.origin] = stack.enter_context(zipfile.ZipFile(path))
            return archives[photograph.origin].read(photograph.file)
        except KeyError:
            raise RoomsError(f"{path}: {photograph.file} is not in it") from None
        except (OSError, zipfile.BadZipFile) as error:
            raise RoomsError(f"{path} cannot be read: {error}") from None


def decoded(photograph: Photograph, encoded: bytes) -> NDArray[np.uint8]:
    """Decode the bytes of a photograph to (H, W, 3) uint8 BGR.

    Raises:
        RoomsError: they are not an image.
    """
    try:
        return decode_image_bytes(encoded)
    except ImageError as error:
        raise RoomsError(f"{photograph.path}: {error}") from None


def _nyu(folder: Path) -> list[Photograph]:
    path = folder / NYU / "questions.jsonl"
    found = []
    for number, entry in enumerate(read_json_lines(path), 1):
        where = f"{path}, entry {number}"
        asked = entry.get("questions")
        if not isinstance(asked, list) or not all(isinstance(pair, dict) for pair in asked):
            raise RoomsError(f"{where}: questions is missing or no list of objects")
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


def _coco(folder: Path, withheld: frozenset[str]) -> tuple[list[Photograph], list[PooledCaption]]:
    path = folder / COCO / "captions_val2017.json"
    document = read_json(path)
    try:
        names = {str(image["id"]): str(image["file_name"]) for image in document["images"]}
        pool = [
            PooledCaption(image, str(entry["caption"]))
            for entry in document["annotations"]
            if (image := str(entry["image_id"])) not in withheld
        ]
    except (KeyError, TypeError) as error:
        raise RoomsError(f"{path}: no annotation file of COCO ({error} is missing or of another kind)") from None
    own: dict[str, list[str]] = {}
    for caption in pool:
        own.setdefault(caption.image, []).append(caption.text)
    there = folder / COCO / "images"
    if not there.is_dir():
        raise RoomsError(f"{there}: no such folder")
    photographs = [
        Photograph(COCO, names[image], captions=tuple(texts))
        for image, texts in own.items()
        if (there / names.get(image, "")).is_file()
    ]
    return sorted(photographs, key=lambda photograph: photograph.file), pool


def _measured_images(folder: Path) -> frozenset[str]:
    """Ids of the photographs that are for measuring: no word about them may be learnt."""
    found: set[str] = set()
    paths = sorted((folder / MEASURING_ONLY).glob("captions_*.json"))
    if not paths:
        raise RoomsError(f"{folder / MEASURING_ONLY}: no captions_*.json; they say which photographs to leave out")
    for path in paths:
        try:
            found.update(str(image["id"]) for image in read_json(path)["images"])
        except (KeyError, TypeError) as error:
            raise RoomsError(f"{path}: no annotation file of COCO ({error} is missing or of another kind)") from None
    return frozenset(found)


def _text(where: str, entry: dict[str, Any], key: str) -> str:
    if not isinstance(value := entry.get(key), str) or not value.strip():
        raise RoomsError(f"{where}: {key} is missing or no text")
    return value


def _texts(where: str, entry: dict[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise RoomsError(f"{where}: {key} is missing or no list of texts")
    return tuple(value)
