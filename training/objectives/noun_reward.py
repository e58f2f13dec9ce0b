"""What a caption earns for its nouns: something for every kind of object that is there, less for each that is not.

CIDEr-D rewards what people say of a photograph, and most of what they say is not what a robot wants to hear: a table
is named, the cups on it are not. Boxes of a teacher (``python -m training.detection.label``) tell what is there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.coverage.class_words import ClassWords
from smart_caption_ros.coverage.nouns import NounFinder
from training.detection.labels import Labels

SURE = 0.35
"""Score from which on an object is there; what has a box of any score may be there."""
FEWEST = 3
"""Kinds of objects that a photograph is taken to have at least: one of one earns as much as one of three."""
WRONG = 0.5
"""What a noun of something that is not there costs, in nouns of something that is: teachers miss things too."""
_MOSTLY = 0.8  # share of a word's uses in which it must be a noun
_USES = 40  # that are looked at


@dataclass(frozen=True)
class KnownObjects:
    """What is to be seen in the images of a training split."""

    class_names: Sequence[str]
    sure: np.ndarray
    """(images, classes) bool, which kinds are there."""
    possible: np.ndarray
    """(images, classes) bool, which kinds are not known to be missing."""

    @classmethod
    def from_labels(cls, labels: Labels, images: Sequence[str]) -> "KnownObjects":
        """Of an image without labels nothing is known."""
        shape = (len(images), len(labels.class_names))
        sure, possible = np.zeros(shape, bool), np.ones(shape, bool)
        for row, image in enumerate(images):
            if image in labels.boxes:
                boxes = labels.boxes[image]
                possible[row] = ~labels.sought(image)
                possible[row, boxes.class_ids] = True
                sure[row, boxes.class_ids[boxes.scores >= SURE]] = True
        return cls(labels.class_names, sure, possible)


class NounReward:
    """Up to 1, for captions that name all that is there; below 0 for those of things that are not."""

    def __init__(self, objects: KnownObjects, captions: Iterable[Sequence[str]], vocabulary: Vocabulary) -> None:
        """
        Args:
            captions: of the training split, as words: they tell which words are nouns ("an orange", not "orange
                shirts").

        Raises:
            CoverageError: the package's spaCy pipeline cannot be loaded.
        """
        self._objects = objects
        self._named = _words_of_classes(captions, vocabulary, objects.class_names)

    def score(self, images: np.ndarray, words: np.ndarray) -> np.ndarray:
        """``(named kinds that are there - WRONG * words for kinds that are not) / kinds that are there``.

        The latter count as ``FEWEST`` if they are fewer.

        Args:
            images: (B,) integers, which images of the training split.
            words: (B, k, T) integers, word ids.

        Returns:
            (B, k) float64.
        """
        named = self._named[words]  # (B, k, T, classes)
        sure, possible = self._objects.sure[images], self._objects.possible[images]
        right = (named.any(axis=2) & sure[:, None]).sum(axis=-1)
        wrong = (named.any(axis=-1) & ~(named & possible[:, None, None]).any(axis=-1)).sum(axis=-1)
        return np.asarray((right - WRONG * wrong) / np.maximum(sure.sum(axis=-1), FEWEST)[:, None])


def _words_of_classes(
    captions: Iterable[Sequence[str]], vocabulary: Vocabulary, class_names: Sequence[str]
) -> np.ndarray:
    """(words, classes) bool: which word names which class, by the table that noun coverage uses."""
    finder, table = NounFinder.load(None, class_names), ClassWords.load()
    places = {name: place for place, name in enumerate(class_names)}
    ids = {word: index for index, word in enumerate(vocabulary.words)}
    uses: dict[str, list[str]] = {}
    for caption in captions:
        for word in set(caption):
            if word in ids and len(found := uses.setdefault(word, [])) < _USES:
                found.append(" ".join(caption))
    named = np.zeros((len(ids), len(class_names)), bool)
    for word, sentences in uses.items():
        if not table.classes_of.keys() & _singulars(word):
            continue
        nouns = [[noun for noun in finder.nouns(each) if word in noun.text.split()] for each in sentences]
        found = [each[0].lemma for each in nouns if each]
        if len(found) < _MOSTLY * len(sentences):
            continue
        meant = set().union(*(table.classes_of.get(lemma, frozenset()) for lemma in set(found)))
        named[ids[word], [places[name] for name in meant if name in places]] = True
    return named


def _singulars(word: str) -> set[str]:
    """What a word may be the plural of; a first sieve, the lemma decides."""
    ends = {"s": ("",), "es": ("", "e"), "ies": ("y",), "ves": ("f", "fe"), "men": ("man",)}
    return {word} | {
        word.removesuffix(end) + other for end, others in ends.items() if word.endswith(end) for other in others
    }
