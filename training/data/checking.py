"""Reading all data of an experiment before its first step: what is missing, broken, empty or there twice."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tqdm import tqdm

from smart_caption_ros.files import sha256_of_bytes
from training.configs.schema import DataConfig
from training.data.caption_dataset import SPLITS, CaptionDataset, Issue
from training.data.datasets import has_own_data, open_dataset
from training.data.loading import loading_threads
from training.data.tokenizer import RULES
from training.errors import DataError

MISSING, UNREADABLE, SAME = "missing pictures", "pictures that cannot be read", "pictures that are there twice"
WITHOUT_WORDS = "captions without a letter or digit"


def check_data(config: DataConfig, data: Path, *, pictures: bool = True) -> tuple[dict[str, list[str]], list[Issue]]:
    """Read everything that a data set has.

    Args:
        config: of the data set.
        data: data folder.
        pictures: whether to read the pictures, too.

    Returns:
        The images of each split, and everything that is wrong with them.

    Raises:
        DataError: the data set cannot be opened.
    """
    dataset = open_dataset(config, data)
    images = images_of(dataset)
    issues = list(dataset.issues)
    split = RULES[config.rule].words
    for image in dict.fromkeys(image for own in images.values() for image in own):
        issues += [Issue(WITHOUT_WORDS, f"{image}: {text!r}") for text in dataset.captions[image] if not split(text)]
    if pictures:
        bad, same = _read_pictures(dataset, [image for own in images.values() for image in own])
        issues += [*bad.values(), *same]
    return images, issues


def unusable_pictures(config: DataConfig, data: Path) -> tuple[frozenset[str], str]:
    """Read the pictures of train and dev before training, if the experiment says so or has the user's own data.

    Returns:
        Image ids to leave out, and a sentence on all that is left out; empty if nothing is.

    Raises:
        DataError: something is to be left out, and the experiment says ``bad_data: refuse``.
    """
    if not (config.bad_data or has_own_data(config)):
        return frozenset(), ""
    dataset = open_dataset(config, data)
    images = [image for name in ("train", "dev") for image in dataset.split(name)]
    bad, _ = _read_pictures(dataset, images)
    issues = [*dataset.issues, *bad.values()]
    if not issues:
        return frozenset(), ""
    sentence = f"{in_words(issues)}, for example {issues[0].where}; train CONFIG --check lists them all"
    if config.bad_data == "refuse":
        raise DataError(f"bad data: {sentence}")
    return frozenset(bad), f"left out: {sentence}"


def images_of(dataset: CaptionDataset) -> dict[str, list[str]]:
    """List the images of the splits that the data set has."""
    images = {}
    for name in SPLITS:
        try:
            images[name] = dataset.split(name)
        except DataError:
            if name == "train":
                raise
    return images


def in_words(issues: Iterable[Issue]) -> str:
    """Count the issues of each kind."""
    counts = Counter(issue.kind for issue in issues)
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing is wrong"


def _read_pictures(dataset: CaptionDataset, images: Iterable[str]) -> tuple[Mapping[str, Issue], Sequence[Issue]]:
    """Read every picture once, in parallel.

    Returns:
        The issue of each picture that cannot be used, and the groups of pictures that are the same.
    """
    names = list(dict.fromkeys(images))

    def read(name: str) -> Issue | str:
        try:
            dataset.check_photographs([name])
        except DataError as error:
            return Issue(MISSING, str(error))
        try:
            return sha256_of_bytes(dataset.read_images([name]).tobytes())
        except DataError as error:
            return Issue(UNREADABLE, str(error))

    with ThreadPoolExecutor(loading_threads(1)) as pool:
        found = list(tqdm(pool.map(read, names), "pictures", len(names), unit="picture", delay=1))
    bad = {name: result for name, result in zip(names, found, strict=True) if isinstance(result, Issue)}
    groups: dict[str, list[str]] = defaultdict(list)
    for name, result in zip(names, found, strict=True):
        if isinstance(result, str):
            groups[result].append(name)
    return bad, [Issue(SAME, " = ".join(group)) for group in groups.values() if len(group) > 1]
