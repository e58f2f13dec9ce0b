"""COCO's JSON files: caption annotations, instance annotations, results (an image id and a caption each), and captions
with Karpathy's splits: ``dataset_coco.json`` (Karpathy and Fei-Fei 2015).

Readers raise :class:`DataError` for a file that is missing, of another format or without entries; it names the file,
the entry and the reason. Image ids are strings.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smart_caption_ros.files import write_text_atomically
from training.data.json_files import read_json
from training.errors import DataError


@dataclass(frozen=True)
class CocoCaptions:
    """Captions of an annotation file by image id."""

    captions: dict[str, list[str]]
    """Captions as written, of every image that has any."""
    file_names: dict[str, str]
    """File name of every image of the file."""
    domains: dict[str, str]
    """Domain of the images that name one, as those of nocaps do (in-domain, near-domain, out-domain)."""


def read_captions(path: Path) -> CocoCaptions:
    """Read ``captions_*.json``: ``images`` (``id``, ``file_name``) and ``annotations`` (``image_id``, ``caption``)."""
    document = _read_object(path, "annotations")
    captions: dict[str, list[str]] = defaultdict(list)
    for place, entry in enumerate(document["annotations"]):
        captions[_image_id(path, place, entry)].append(_caption(path, place, entry))
    images = _images(document)
    return CocoCaptions(
        dict(captions),
        {image_key(image["id"]): str(image["file_name"]) for image in images},
        {image_key(image["id"]): image["domain"] for image in images if isinstance(image.get("domain"), str)},
    )


def image_entries(document: dict[str, Any]) -> list[dict[str, Any]] | None:
    """List the images of COCO's caption annotations or of Karpathy's file, whatever else is wrong with them.

    Returns:
        For each image its keys, with its ``captions``, or with the folder in its ``filename``. None for other files.
    """
    images, annotations = document.get("images"), document.get("annotations")
    if not isinstance(images, list):
        return None
    images = [image for image in images if isinstance(image, dict)]
    if not isinstance(annotations, list):
        return [{**image, "filename": _photograph(image)} for image in images]
    captions: dict[str, list[Any]] = defaultdict(list)
    for annotation in annotations:
        if isinstance(annotation, dict):
            captions[image_key(annotation.get("image_id"))].append(annotation.get("caption", ""))
    return [{**image, "captions": captions[image_key(image.get("id"))]} for image in images]


def image_key(value: object) -> str:
    """Return an image id as text; some tools write whole numbers as 7.0."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _photograph(image: dict[str, Any]) -> str:
    """Return the file of an image of Karpathy's file, below the folder of COCO's photographs."""
    parts = (image.get("filepath"), image.get("filename"))
    return "/".join(part for part in parts if part and isinstance(part, str))


def read_image_files(path: Path) -> dict[str, str]:
    """Read the file names of ``images`` by image id, from a file with or without annotations.

    Test sets whose captions are not public, such as those of COCO and nocaps, have such files (``image_info_*.json``).
    """
    files = {image_key(image["id"]): str(image["file_name"]) for image in _images(_read_object(path, "images"))}
    if not files:
        raise DataError(f"{path}: no image with id and file_name in it")
    return files


def read_image_sizes(paths: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """Read width and height in pixels of the ``images`` of annotation files, by image id."""
    sizes: dict[str, tuple[int, int]] = {}
    for path in paths:
        of_file = {
            image_key(image["id"]): (image["width"], image["height"])
            for image in _images(_read_object(path, "images"))
            if isinstance(image.get("width"), int) and isinstance(image.get("height"), int)
        }
        if not of_file:
            raise DataError(f"{path}: no image with width and height in it")
        sizes |= of_file
    return sizes


def _images(document: dict[str, Any]) -> list[dict[str, Any]]:
    images = document.get("images")
    listed = images if isinstance(images, list) else []
    return [image for image in listed if isinstance(image, dict) and {"id", "file_name"} <= image.keys()]


def read_results(path: Path) -> dict[str, str]:
    """Read a result file, a list of ``{"image_id": ..., "caption": ...}``.

    Returns:
        The caption of each image id, as written. It may be empty, and is then scored as an empty caption.
    """
    entries = read_json(path)
    if not isinstance(entries, list):
        raise DataError(f"{path}: a COCO result file is a list, not {_kind(entries)}")
    captions: dict[str, str] = {}
    for place, entry in enumerate(entries):
        image = _image_id(path, place, entry)
        if not isinstance(entry.get("caption"), str):
            raise DataError(f"{path}, entry {place}, image {image}: caption is missing or no text")
        if image in captions:
            raise DataError(f"{path}, entry {place}: a second caption for image {image}")
        captions[image] = entry["caption"]
    if not captions:
        raise DataError(f"{path}: no caption in it")
    return captions


def write_results(path: Path, captions: Mapping[str, str]) -> None:
    """Write a result file; ids that are numbers are written as numbers, as evaluation servers expect them. Others, such
    as 007, stay text.

    Raises:
        DataError: the file cannot be written.
    """
    ids = (int(image) if image.isdecimal() and str(int(image)) == image else image for image in captions)
    entries = [{"image_id": image, "caption": caption} for image, caption in zip(ids, captions.values(), strict=True)]
    try:
        write_text_atomically(path, json.dumps(entries, indent=0) + "\n")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from None


def read_objects(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Read the classes of the annotated objects from ``instances_*.json``.

    Returns:
        Class names by image id, of every image of the files.
    """
    objects: dict[str, set[str]] = {}
    for path in paths:
        document = _read_object(path, "images", "annotations", "categories")
        try:
            names = {image_key(category["id"]): str(category["name"]) for category in document["categories"]}
            objects.update({image_key(image["id"]): set() for image in document["images"]})
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: an image or category lacks {error}") from None
        for place, entry in enumerate(document["annotations"]):
            image = _image_id(path, place, entry)
            if image not in objects:
                raise DataError(f"{path}, annotation {place}: image {image} is not among the file's images")
            if (category := image_key(entry.get("category_id"))) not in names:
                raise DataError(f"{path}, annotation {place}, image {image}: unknown category {category}")
            objects[image].add(names[category])
    return objects


def _read_object(path: Path, *lists: str) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataError(f"{path}: a COCO annotation file is an object, not {_kind(document)}")
    for key in lists:
        if not isinstance(document.get(key), list):
            raise DataError(f"{path}: a COCO annotation file has a list of {key}; this one has none")
    return document


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a single value"


def _image_id(path: Path, place: int, entry: Any) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("image_id"), int | float | str):
        raise DataError(f"{path}, entry {place}: no image_id")
    return image_key(entry["image_id"])


def _caption(path: Path, place: int, entry: dict[str, Any]) -> str:
    caption = entry.get("caption")
    if not isinstance(caption, str) or not caption.strip():
        raise DataError(f"{path}, entry {place}, image {entry['image_id']}: caption is missing or empty")
    return caption


KARPATHY_SPLITS = ("train", "restval", "val", "test")


@dataclass(frozen=True)
class Karpathy:
    """Captions and splits by COCO's image ids."""

    captions: dict[str, list[str]]
    """Captions of every image, as written."""
    files: dict[str, str]
    """File of each image, below the folder of COCO's photographs, e.g. ``val2014/COCO_val2014_000000391895.jpg``."""
    splits: dict[str, list[str]]
    """Image ids of ``train``, ``restval``, ``val`` and ``test``, in file order."""

    @classmethod
    def load(cls, path: Path) -> "Karpathy":
        """Read and check the file."""
        document = _read_object(path, "images")
        captions: dict[str, list[str]] = {}
        files: dict[str, str] = {}
        splits: dict[str, list[str]] = {split: [] for split in KARPATHY_SPLITS}
        for place, image in enumerate(document["images"]):
            if not isinstance(image, dict) or not isinstance(image.get("cocoid"), int):
                raise DataError(f"{path}, entry {place}: no cocoid")
            name = str(image["cocoid"])
            where = f"{path}, image {name}"
            if name in captions:
                raise DataError(f"{where}: it is in the file twice")
            if image.get("split") not in KARPATHY_SPLITS:
                raise DataError(f"{where}: split {image.get('split')!r} is none of {', '.join(KARPATHY_SPLITS)}")
            if not isinstance(image.get("filename"), str) or not isinstance(image.get("filepath", ""), str):
                raise DataError(f"{where}: no filename, or filepath is no text")
            captions[name] = _sentences(where, image.get("sentences"))
            files[name] = _photograph(image)
            splits[image["split"]].append(name)
        return cls(captions, files, splits)

    def split(self, name: str) -> list[str]:
        """List the image ids of a split, one of :data:`KARPATHY_SPLITS`.

        ``train`` includes ``restval``, as is usual: 113,287 images instead of 82,783.
        """
        if name not in KARPATHY_SPLITS:
            raise DataError(f"unknown split {name!r}; Karpathy's are {', '.join(KARPATHY_SPLITS)}")
        return [*self.splits[name], *(self.splits["restval"] if name == "train" else [])]


def _sentences(where: str, sentences: Any) -> list[str]:
    if not isinstance(sentences, list) or not sentences:
        raise DataError(f"{where}: no captions")
    captions = []
    for place, sentence in enumerate(sentences):
        raw = sentence.get("raw") if isinstance(sentence, dict) else None
        if not isinstance(raw, str) or not raw.strip():
            raise DataError(f"{where}, sentence {place}: caption is missing or empty")
        captions.append(raw.strip())
    return captions
