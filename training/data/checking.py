"""Reading all data of an experiment before its first step: what is missing, broken, empty or there twice."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from smart_caption_ros.files import sha256_of_bytes, write_text_atomically
from smart_caption_ros.sources.image_folder import natural_order
from training.configs.schema import DataConfig
from training.data.caption_dataset import SPLITS, CaptionDataset, Issue
from training.data.datasets import OWN_DATA, has_own_data, open_dataset
from training.data.json_files import read_json
from training.data.loading import load_ahead, loading_threads
from training.data.tokenizer import RULES
from training.errors import DataError

MISSING, UNREADABLE, SAME = "missing pictures", "pictures that cannot be read", "pictures that are there twice"
WITHOUT_WORDS = "captions without a letter or digit"
IN_TWO_SPLITS = "training pictures that are in dev or test as well"
DIVIDED_GROUPS = "groups in two splits"
NEIGHBOURS = "neighbours by file name that look alike, in two splits: name their place in a column group"
"""Kinds of issues."""
CHECKED = "checked_pictures.json"
"""File of the cache: digests of the pictures that earlier runs have read."""
_LOOK_ALIKE = 0.8
"""Correlation of two pictures of 16 x 16 pixels from which they look alike; that of 300 random pairs of Flickr8k is at
most 0.66."""


def check_data(config: DataConfig, data: Path, *, pictures: bool = True) -> tuple[dict[str, list[str]], list[Issue]]:
    """Read everything that a data set has.

    Returns:
        The images of each split, and everything that is wrong with them.

    Raises:
        DataError: the data set cannot be opened.
    """
    dataset = open_dataset(config, data)
    images = _images_of(dataset)
    issues = list(dataset.issues)
    split = RULES[config.rule].words
    for image in _all(images):
        issues += [Issue(WITHOUT_WORDS, f"{image}: {text!r}") for text in dataset.captions[image] if not split(text)]
    issues += _divided_groups(dataset)
    if pictures:
        bad, read = _read_pictures(dataset, _all(images))
        issues += [*bad.values(), *_same(read), *_in_two_splits(images, read).values()]
        if config.dataset in OWN_DATA:
            issues += _neighbours(images, read)
    return images, issues


def unusable_pictures(config: DataConfig, data: Path, cache: Path) -> tuple[frozenset[str], str]:
    """Read the pictures before training, if the experiment says so or has the user's own data.
    ``cache``: folder for what was found, so that a picture is read once.

    Returns:
        Image ids to leave out, and a sentence on all that is left out; empty if nothing is.

    Raises:
        DataError: something is to be left out, and the experiment says ``bad_data: refuse``.
    """
    if not (config.bad_data or has_own_data(config)):
        return frozenset(), ""
    dataset = open_dataset(config, data)
    images = _images_of(dataset)
    bad, read = _read_pictures(dataset, _all(images), cache / CHECKED)
    bad |= _in_two_splits(images, read)
    issues = [*dataset.issues, *bad.values()]
    if not issues:
        return frozenset(), ""
    sentence = f"{count_kinds(issues)}, for example {issues[0].where}; train CONFIG --check lists them all"
    if config.bad_data == "refuse":
        raise DataError(f"bad data: {sentence}")
    return frozenset(bad), f"left out: {sentence}"


def count_kinds(issues: Iterable[Issue]) -> str:
    """Count the issues of each kind."""
    counts = Counter(issue.kind for issue in issues)
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing is wrong"


def _images_of(dataset: CaptionDataset) -> dict[str, list[str]]:
    """List the images of the splits that the data set has."""
    return {name: dataset.split(name) for name in SPLITS if name == "train" or dataset.splits.get(name)}


def _all(images: Mapping[str, Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(image for own in images.values() for image in own))


class _Picture(NamedTuple):
    """Digest and thumbnail of a picture, which are compared with those of others."""

    digest: str
    """Digest of its pixels."""
    thumbnail: NDArray[np.uint8] | None
    """(16, 16) grey; None for a picture that an earlier run has read."""


def _read_pictures(
    dataset: CaptionDataset, images: Sequence[str], checked: Path | None = None
) -> tuple[dict[str, Issue], dict[str, _Picture]]:
    """Read every picture once, in parallel.
    ``checked``: file with the digests of pictures that are not read again; None: all are read.

    Returns:
        The issue of each picture that cannot be used, and the others.
    """
    known: dict[str, str] = {}
    if checked is not None and checked.exists():
        known = read_json(checked)

    def read(name: str) -> tuple[str, Issue | _Picture]:
        key = ""
        try:
            dataset.check_photographs([name])
            key = dataset.photographs.key(name)
            if key in known:
                return key, _Picture(known[key], None)
        except DataError as error:
            return key, Issue(MISSING, str(error))
        try:
            (picture,) = dataset.read_images([name])
        except DataError as error:
            return key, Issue(UNREADABLE, str(error))
        grey = cv2.resize(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), (16, 16), interpolation=cv2.INTER_AREA)
        return key, _Picture(sha256_of_bytes(picture.tobytes()), np.asarray(grey, np.uint8))

    ahead = load_ahead(read, images, loading_threads(1))
    found = list(tqdm(ahead, "pictures", len(images), unit="picture", delay=1))
    bad = {name: own for name, (_, own) in zip(images, found, strict=True) if isinstance(own, Issue)}
    pictures = {name: own for name, (_, own) in zip(images, found, strict=True) if isinstance(own, _Picture)}
    digests = {key: own.digest for key, own in found if isinstance(own, _Picture)}
    if checked is not None and not digests.keys() <= known.keys():
        checked.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(checked, json.dumps(known | digests))
    return bad, pictures


def _same(pictures: Mapping[str, _Picture]) -> list[Issue]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, picture in pictures.items():
        groups[picture.digest].append(name)
    return [Issue(SAME, " = ".join(group)) for group in groups.values() if len(group) > 1]


def _in_two_splits(images: Mapping[str, Sequence[str]], pictures: Mapping[str, _Picture]) -> dict[str, Issue]:
    """Find the training pictures whose pixels are those of a picture of another split."""
    measured = {
        pictures[name].digest: name for split in ("dev", "test") for name in images.get(split, ()) if name in pictures
    }
    return {
        name: Issue(IN_TWO_SPLITS, f"{name} = {measured[pictures[name].digest]}")
        for name in images["train"]
        if name in pictures and pictures[name].digest in measured
    }


def _divided_groups(dataset: CaptionDataset) -> list[Issue]:
    splits: dict[str, set[str]] = defaultdict(set)
    for split, images in dataset.splits.items():
        for image in images:
            if image in dataset.groups:
                splits[dataset.groups[image]].add(split)
    return [
        Issue(DIVIDED_GROUPS, f"{group}: {', '.join(sorted(own))}") for group, own in splits.items() if len(own) > 1
    ]


def _neighbours(images: Mapping[str, Sequence[str]], pictures: Mapping[str, _Picture]) -> list[Issue]:
    """Find pictures that follow each other by name, as the frames of a drive, look alike and are in two splits."""
    split_of = {name: split for split, own in images.items() for name in own}
    names = sorted(pictures, key=lambda name: natural_order(Path(name)))
    issues = []
    for first, second in pairwise(names):
        one, other = pictures[first].thumbnail, pictures[second].thumbnail
        if split_of[first] == split_of[second] or one is None or other is None:
            continue
        pair = np.stack([one.ravel(), other.ravel()]).astype(float)
        if pair.std(axis=1).min() > 0 and np.corrcoef(pair)[0, 1] >= _LOOK_ALIKE:
            issues.append(Issue(NEIGHBOURS, f"{first} ({split_of[first]}) ~ {second} ({split_of[second]})"))
    return issues
