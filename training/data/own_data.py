"""The user's own pictures with captions: a folder with texts beside the pictures, or tables of file names and captions.

Entries that cannot be used (no caption, an empty one) are collected as issues and left out.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from smart_caption_ros.files import sha256_of_bytes
from smart_caption_ros.sources.image_folder import is_image_file, natural_order
from training.configs.ranges import Float, Int
from training.data.caption_dataset import SPLITS, CaptionDataset, Issue
from training.data.coco import image_entries
from training.data.json_files import read_json, read_json_lines
from training.data.photographs import PhotographFiles, visible_files
from training.errors import DataError

PICTURE_KEYS = ("file_name", "image", "filename", "file", "path", "picture", "photograph")
CAPTION_KEYS = ("caption", "captions", "text", "texts", "sentence", "sentences", "description")
"""Names of the column, or key, with the file name of a picture and with its caption or list of captions."""
GROUP_KEYS = ("group", "place", "scene")
"""Names of the column with what pictures have in common that may not be divided among splits, as a drive or a room."""
SPLIT_NAMES = {
    "train": "train", "training": "train", "restval": "train", "dev": "dev", "val": "dev", "valid": "dev",
    "validation": "dev", "test": "test", "testing": "test",
}  # fmt: skip
"""Splits by the values of a column ``split``, and by the names of the folders directly below that of the pictures."""
METADATA = ("metadata.jsonl", "metadata.csv")
"""Tables of a Hugging Face ``imagefolder``; file names are relative to the table's folder."""
DUPLICATE, NO_CAPTION = "captions twice for one picture", "pictures without a caption"
EMPTY, NO_PICTURE = "empty captions", "texts without a picture"
"""Kinds of issues."""


class Row(NamedTuple):
    """A picture in a table or folder: captions, split and group."""

    where: str
    """Place, for messages."""
    picture: str
    """File name, relative to the folder of the pictures."""
    captions: list[str]
    split: str = ""
    """One of :data:`SPLIT_NAMES`; empty where the file does not say."""
    group: str = ""
    """Pictures of one group stay in one split; empty where the file does not say."""


@dataclass(frozen=True, kw_only=True)
class _OwnOptions:
    dev_share: Float = 0.1
    """Share of the training pictures that become the dev split if there is none; 1 picture at least."""
    seed: Int = 1
    """Seed by which they are drawn."""
    name: str = "own photographs and captions"
    """Name of the data in the manifests of models."""
    terms: str = "not stated"
    """Terms of use of the data."""

    def __post_init__(self) -> None:
        if not 0 < self.dev_share < 1:
            raise ValueError(f"dev_share must be more than 0 and less than 1, not {self.dev_share}")

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [{"name": self.name, "terms": self.terms}]


@dataclass(frozen=True, kw_only=True)
class Folder(_OwnOptions):
    """A folder of pictures, each with a ``.txt`` of the same name beside it, one caption a line; or an ``imagefolder``.

    Sub-folders are searched; ``train``, ``dev`` and the like are the splits.
    """

    folder: str
    """Below the data folder, or absolute."""

    def open(self, data: Path) -> CaptionDataset:
        folder = data / self.folder
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; give `folder` below the data folder, {data}, or absolute")
        files = visible_files(folder)
        tables = [path for name in METADATA for path in files if path.name == name]
        issues: list[Issue] = []
        rows = [
            row._replace(picture=str(PurePosixPath(table.parent.relative_to(folder).as_posix(), row.picture)))
            for table in tables
            for row in _rows_of_table(table)
        ] or list(_rows_of_texts(folder, files, issues))
        if not rows:
            raise DataError(f"{folder}: no picture in it or its sub-folders")
        return _dataset_of(rows, folder, self, issues)


@dataclass(frozen=True, kw_only=True)
class Table(_OwnOptions):
    """File names and captions in CSV, TSV, JSON Lines, or JSON in the format of COCO or of Karpathy."""

    table: str | dict[str, str]
    """A file below the data folder, or absolute; or one for each of train, dev and test."""
    photographs: str = ""
    """Folder that the file names are relative to; empty: that of the table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.table:
            raise ValueError("table: expected a file, or one for each of train, dev and test")
        if isinstance(self.table, dict) and (unknown := self.table.keys() - set(SPLITS)):
            raise ValueError(f"table: {min(unknown)}: expected a file for one of {', '.join(SPLITS)}")

    def open(self, data: Path) -> CaptionDataset:
        tables = self.table if isinstance(self.table, dict) else {"": self.table}
        rows = [
            row._replace(split=split or row.split)
            for split, table in tables.items()
            for row in _rows_of_table(data / table)
        ]
        folder = data / (self.photographs or Path(next(iter(tables.values()))).parent)
        return _dataset_of(rows, folder, self)


def _dataset_of(
    rows: Iterable[Row], folder: Path, options: _OwnOptions, issues: Iterable[Issue] = ()
) -> CaptionDataset:
    """Join the rows of each picture, and divide the pictures into splits; image ids are file names below ``folder``.

    Raises:
        DataError: a split is unknown, a picture is in two, or there are too few pictures for a dev split.
    """
    captions: dict[str, list[str]] = {}
    split_of: dict[str, str] = {}
    groups: dict[str, str] = {}
    found = list(issues)
    for where, picture, texts, named, group in rows:
        first = PurePosixPath(picture).parts[0] if "/" in picture else ""
        split = SPLIT_NAMES.get((named or first).strip().lower(), "" if named else "train")
        if not split:
            raise DataError(f"{where}: split {named!r} is none of {', '.join(SPLIT_NAMES)}")
        if split_of.setdefault(picture, split) != split:
            raise DataError(f"{where}: {picture} is in the split {split_of[picture]}, too")
        if group:
            groups[picture] = group
        own = captions.setdefault(picture, [])
        if not texts:
            found.append(Issue(NO_CAPTION, f"{where}: {picture}"))
        for text in map(str.strip, texts):
            if not text or text in own:
                found.append(Issue(DUPLICATE if text else EMPTY, f"{where}: {picture}"))
            else:
                own.append(text)
    captions = {picture: own for picture, own in captions.items() if own}
    splits = {split: [picture for picture in captions if split_of[picture] == split] for split in SPLITS}
    if not splits["dev"]:
        if len(splits["train"]) < 2:
            raise DataError(f"{folder}: {len(splits['train'])} pictures with captions to train on; 2 are needed")
        _split_off_dev(splits, groups, options)
        if not splits["train"]:
            raise DataError(f"{folder}: all pictures are of one group, so none is left for a dev split")
    photographs = PhotographFiles({picture: folder / picture for picture in captions})
    return CaptionDataset(captions, splits, photographs, found, groups=groups)


def _split_off_dev(splits: dict[str, list[str]], groups: Mapping[str, str], options: _OwnOptions) -> None:
    """Move pictures, whole groups of them, from train to dev.

    The turn of a group depends on seed and name, so new pictures move few others. A picture without a group is one of
    its own.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for picture in splits["train"]:
        members[groups.get(picture, picture)].append(picture)
    wanted, dev = max(1, round(options.dev_share * len(splits["train"]))), set[str]()
    for name in sorted(members, key=lambda name: sha256_of_bytes(f"{options.seed}/{name}".encode(errors="replace"))):
        if len(dev) < wanted:
            dev.update(members[name])
    train = splits["train"]
    splits["train"] = [picture for picture in train if picture not in dev]
    splits["dev"] = [picture for picture in train if picture in dev]


def _rows_of_texts(folder: Path, files: Sequence[Path], issues: list[Issue]) -> Iterator[Row]:
    files = sorted(files, key=natural_order)
    pictures = [path for path in files if is_image_file(path)]
    for path in pictures:
        text = path.with_suffix(".txt")
        lines = [line for line in _read_text(text).splitlines() if line.strip()] or [""] if text.exists() else []
        yield Row(str(text), path.relative_to(folder).as_posix(), lines)
    texts = {path.with_suffix(".txt") for path in pictures}
    issues += [Issue(NO_PICTURE, str(path)) for path in files if path.suffix == ".txt" and path not in texts]


def _rows_of_table(path: Path) -> Iterator[Row]:
    """Read a table, by its suffix."""
    if path.suffix in (".csv", ".tsv"):
        entries = _rows_of_csv(path)
    elif path.suffix in (".jsonl", ".ndjson"):
        entries = [(f"{path}, entry {number}", entry) for number, entry in enumerate(read_json_lines(path), 1)]
    elif path.suffix == ".json":
        entries = _rows_of_json(path, read_json(path))
    else:
        raise DataError(f"{path}: expected a table ending in .csv, .tsv, .jsonl, .ndjson or .json")
    if not entries:
        raise DataError(f"{path}: no entry in it")
    for where, entry in entries:
        picture, captions = (_first(entry, keys) for keys in (PICTURE_KEYS, CAPTION_KEYS))
        if not isinstance(picture, str) or captions is None:
            wanted = " and ".join(f"one of {', '.join(keys)}" for keys in (PICTURE_KEYS, CAPTION_KEYS))
            raise DataError(f"{where}: expected the columns or keys {wanted}; it has {', '.join(map(str, entry))}")
        texts = [_text(text) for text in captions] if isinstance(captions, list) else [_text(captions)]
        named = (_first(entry, keys) for keys in (("split",), GROUP_KEYS))
        split, group = ("" if value is None else str(value) for value in named)  # 0 is a name, too
        yield Row(where, picture, texts, split, group)


def _rows_of_csv(path: Path) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    stream = StringIO(_read_text(path), newline="")
    reader = csv.DictReader(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
    try:
        columns = list(reader.fieldnames or ())
        for row in reader:
            # A caption with commas and without quotes is split into several columns.
            if rest := row.pop(None, None):
                row[columns[-1]] = ",".join([row[columns[-1]], *rest])
            rows.append((f"{path}, line {reader.line_num}", {key: value or "" for key, value in row.items()}))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from None
    return rows


def _rows_of_json(path: Path, document: Any) -> list[tuple[str, dict[str, Any]]]:
    """List the entries of a list, or those of COCO's or Karpathy's file."""
    entries = image_entries(document) if isinstance(document, dict) else document
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{path}: expected a list of objects, COCO's images and annotations, or Karpathy's images")
    return [(f"{path}, entry {number}", entry) for number, entry in enumerate(entries)]


def _first(entry: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value of the first of the keys that the entry has, whatever their case."""
    lower = {str(key).strip().lower(): value for key, value in entry.items()}
    return next((lower[key] for key in keys if lower.get(key) is not None), None)


def _text(value: Any) -> str:
    """Return a caption, which Karpathy's file has as ``raw``; empty for anything but text."""
    text = value.get("raw") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from None
