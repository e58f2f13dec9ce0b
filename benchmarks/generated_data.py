"""Generated data for benchmarks: random captions, stored features and photographs, in formats of all commits."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from training.data.feature_store import StoreWriter
from training.paths import data_folder

CAPTIONS_PER_IMAGE = 5
WIDTH, HEIGHT = 640, 480
"""Size of the photographs, pixels."""
STORE, PHOTOGRAPHS = "store", "photographs"
"""Folders of the features and of the photographs, below the data folder."""
_SHARD_IMAGES = 500
_DISTINCT_PHOTOGRAPHS = 100
_DEV_IMAGES = 1


@dataclass(frozen=True)
class DataSize:
    """Extent of the generated data; the defaults are those of Flickr8k through MobileNetV2."""

    images: int = 6000
    """Training images."""
    words: int = 2500
    """Words of the vocabulary, without the special ones."""
    tokens: int = 49
    """Visual tokens of an image."""
    token_width: int = 1280


@contextmanager
def generated_data(size: DataSize, seed: int, *, photographs: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a temporary folder with the data of :func:`write_data`, and the section."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as name:
        data = Path(name, "data")
        data.mkdir()
        yield data, write_data(data, size, seed, photographs=photographs)


def write_data(folder: Path, size: DataSize, seed: int, *, photographs: bool) -> dict[str, Any]:
    """Write captions, features and, if asked for, photographs.

    The features of 500 images and 100 photographs are distinct; other images have links to the same files, so that
    the data of a large corpus needs little space.

    Returns:
        The ``data`` section of an experiment on this data, without lengths of captions.
    """
    random = np.random.default_rng(seed)
    splits = {"train": range(size.images), "dev": range(size.images, size.images + _DEV_IMAGES)}
    for split, images in splits.items():
        _write_captions(folder / f"captions_{split}.json", images, size.words, random)
    _write_store(folder / STORE, size, random)
    if photographs:
        _write_photographs(folder / PHOTOGRAPHS, size.images + _DEV_IMAGES, random)
    # The networks of phases on photographs are the released ones.
    for networks in ("backbones", "detectors"):
        (folder / networks).symlink_to(data_folder().absolute() / networks)
    return {
        "dataset": "coco",
        "options": {"captions": {split: f"captions_{split}.json" for split in splits}, "photographs": PHOTOGRAPHS},
        "minimum_count": 1,
    }


def _write_captions(path: Path, images: range, words: int, random: np.random.Generator) -> None:
    """Write captions of 6 to 17 words with word frequencies by Zipf's law, as COCO's annotation file."""
    share = 1 / np.arange(1, words + 1)
    lengths = random.integers(6, 18, (len(images), CAPTIONS_PER_IMAGE))
    chosen = iter(random.choice(words, int(lengths.sum()), p=share / share.sum()).tolist())
    annotations = [
        {"image_id": image, "caption": " ".join(f"w{next(chosen)}" for _ in range(length))}
        for image, of_image in zip(images, lengths, strict=True)
        for length in of_image
    ]
    files = [{"id": image, "file_name": _photograph(image)} for image in images]
    path.write_text(json.dumps({"images": files, "annotations": annotations}), encoding="utf-8")


def _write_store(folder: Path, size: DataSize, random: np.random.Generator) -> None:
    """Write a feature store in which all shards have the arrays of the first one, with other image ids."""
    count = size.images + _DEV_IMAGES
    first = min(_SHARD_IMAGES, count)
    with StoreWriter(folder, {"made_by": "benchmarks.training"}, size.token_width, _SHARD_IMAGES) as store:
        for image in range(first):
            tokens = random.standard_normal((size.tokens, size.token_width), np.float32)
            corners = random.random((size.tokens, 2, 2)).astype(np.float32)
            corners.sort(axis=1)
            store.add(str(image), tokens, (corners * (WIDTH, HEIGHT)).reshape(-1, 4), WIDTH, HEIGHT)
    index = json.loads((folder / "shard-00000.json").read_text(encoding="utf-8"))["images"]
    for shard, start in enumerate(range(first, count, _SHARD_IMAGES), 1):
        # The last shard, which may have fewer images, is filled up with images that nothing asks for.
        entries = [{**entry, "id": str(start + place)} for place, entry in enumerate(index)]
        for kind in ("tokens.npy", "boxes.npy"):
            os.link(folder / f"shard-00000.{kind}", folder / f"shard-{shard:05d}.{kind}")
        (folder / f"shard-{shard:05d}.json").write_text(json.dumps({"images": entries}), encoding="utf-8")


def _write_photographs(folder: Path, count: int, random: np.random.Generator) -> None:
    """Write JPEG files of the size of COCO's photographs: coloured surfaces with some noise."""
    folder.mkdir()
    for image in range(count):
        path = folder / _photograph(image)
        if image >= _DISTINCT_PHOTOGRAPHS:
            os.link(folder / _photograph(image % _DISTINCT_PHOTOGRAPHS), path)
            continue
        surfaces = cv2.resize(random.integers(0, 256, (12, 16, 3), np.uint8), (WIDTH, HEIGHT))
        noise = random.integers(-12, 13, surfaces.shape)
        cv2.imwrite(str(path), (surfaces + noise).clip(0, 255).astype(np.uint8))


def _photograph(image: int) -> str:
    return f"{image:012d}.jpg"
