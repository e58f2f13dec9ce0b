"""Flickr8k (Hodosh et al., 2013): images in a zip, captions in a CSV, official splits as lists of file names."""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from training.data.caption_dataset import SPLITS, CaptionDataset
from training.data.held_out import excluded_photographs
from training.data.photographs import PhotographArchive
from training.errors import DataError

PROVENANCE = {
    "name": "Flickr8k, official training split without near duplicates of dev and test: 5,991 photographs, "
    "29,955 captions (Hodosh, Young, Hockenmaier 2013)",
    "terms": "research use",
}


@dataclass(frozen=True)
class Flickr8k:
    """The data set in ``folder`` (``images_224.zip``, ``captions.csv``, ``train.txt``, ``dev.txt``, ``test.txt``).

    Image ids are file names. The training split lacks photographs that show the same as one of a dev or test split
    (:mod:`training.data.held_out`).
    """

    folder: str = "flickr8k"
    """Below the data folder, or absolute."""

    def open(self, data: Path) -> CaptionDataset:
        root = data / self.folder
        for name in ("images_224.zip", "captions.csv", *(f"{split}.txt" for split in SPLITS)):
            if not (root / name).is_file():
                raise DataError(f"{root / name}: no such file; set SMART_CAPTION_DATA to the folder above flickr8k/")
        captions = _read_captions(root / "captions.csv")
        splits = {split: _read_split(root / f"{split}.txt", captions) for split in SPLITS}
        excluded = excluded_photographs("flickr8k")
        splits["train"] = [image for image in splits["train"] if image not in excluded]
        return CaptionDataset(captions, splits, PhotographArchive(root / "images_224.zip"))

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [PROVENANCE]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an error of the text name its file."""
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not UTF-8 text, or malformed ({error})") from None


def _read_split(path: Path, captions: Mapping[str, Sequence[str]]) -> list[str]:
    with _naming(path):
        images = path.read_text(encoding="utf-8-sig").split()
    for line, image in enumerate(images, 1):
        if image not in captions:
            raise DataError(f"{path}, line {line}: {image} has no caption in captions.csv")
    return images


def _read_captions(path: Path) -> dict[str, list[str]]:
    captions: dict[str, list[str]] = defaultdict(list)
    with _naming(path), path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream)
        if next(reader, None) != ["image", "caption"]:
            raise DataError(f"{path}, line 1: expected the header image,caption")
        for row in reader:
            # A caption with a comma and without quotes is split into several columns.
            if len(row) < 2 or not (text := ",".join(row[1:]).strip()):
                raise DataError(f"{path}, line {reader.line_num}: expected an image and its caption")
            captions[row[0]].append(text)
    return dict(captions)
