"""Flickr8k (Hodosh et al., 2013): images in a zip, captions in a CSV, official splits as lists of file names."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from training.data.caption_dataset import SPLITS
from training.data.held_out import excluded_photographs
from training.data.photographs import ArchivedPhotographs, PhotographArchive
from training.errors import DataError

PROVENANCE = {
    "name": "Flickr8k, official training split without near duplicates of dev and test: 5,991 photographs, "
    "29,955 captions (Hodosh, Young, Hockenmaier 2013)",
    "terms": "research use",
}


@dataclass(frozen=True)
class Flickr8k(ArchivedPhotographs):
    """The data set in ``root`` (``images_224.zip``, ``captions.csv``, ``train.txt``, ``dev.txt``, ``test.txt``)."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("images_224.zip", "captions.csv", *(f"{split}.txt" for split in SPLITS)):
            if not (self.root / name).is_file():
                raise DataError(
                    f"{self.root / name}: no such file; set SMART_CAPTION_DATA to the folder above flickr8k/"
                )

    def split(self, name: str) -> list[str]:
        """List the image file names of a split, in file order.

        The training split lacks photographs that show the same as one of a dev or test split
        (:mod:`training.data.held_out`).
        """
        if name not in SPLITS:
            raise DataError(f"unknown split {name!r}; Flickr8k has {', '.join(SPLITS)}")
        path = self.root / f"{name}.txt"
        images = path.read_text(encoding="utf-8-sig").split()
        for line, image in enumerate(images, 1):
            if image not in self.captions:
                raise DataError(f"{path}, line {line}: {image} has no caption in captions.csv")
        return [image for image in images if name != "train" or image not in excluded_photographs("flickr8k")]

    @cached_property
    def captions(self) -> dict[str, list[str]]:
        """Captions of every image, as written."""
        path = self.root / "captions.csv"
        captions: dict[str, list[str]] = defaultdict(list)
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            if next(reader, None) != ["image", "caption"]:
                raise DataError(f"{path}, line 1: expected the header image,caption")
            for row in reader:
                # A caption with a comma and without quotes is split into several columns.
                if len(row) < 2 or not (text := ",".join(row[1:]).strip()):
                    raise DataError(f"{path}, line {reader.line_num}: expected an image and its caption")
                captions[row[0]].append(text)
        return dict(captions)

    @cached_property
    def archive(self) -> PhotographArchive:
        """The photographs."""
        return PhotographArchive(self.root / "images_224.zip")


@dataclass(frozen=True)
class Flickr8kOptions:
    """Path of Flickr8k."""

    folder: str = "flickr8k"
    """Below the data folder, or absolute."""

    def open(self, data: Path) -> Flickr8k:
        return Flickr8k(data / self.folder)

    @property
    def provenance(self) -> list[dict[str, str]]:
        return [PROVENANCE]
