"""Raise and lower words of a caption by the detected objects: :class:`ObjectsGuide` and :func:`guide_words`.

docs/objects.md describes the rules and their effect on captions.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.captioning.guidance import Pieces, WordBiases
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.detections import ClassScores
from smart_caption_ros.errors import CoverageError
from smart_caption_ros.grounding.class_words import ClassWords, class_pieces
from smart_caption_ros.grounding.nouns import NounFinder

AUTO, OFF, BIAS = GUIDE_CHOICES = ("auto", "off", "bias")
"""Choices of :func:`guide_words`."""
STRENGTH = 2.0
"""Bias of a word whose class was found with score 1, natural logarithm."""
NEUTRAL_SCORE = 0.2
"""Score of a class that neither raises nor lowers its words."""


@dataclass(frozen=True)
class _NamingWords:
    """The words of a vocabulary that name classes of the table."""

    vocabulary: Vocabulary
    words: NDArray[np.intp]
    """(n,) ids of the words."""
    classes: NDArray[np.intp]
    """(n, m) indices of the classes that each word names, padded with the number of classes C."""
    numbers: NDArray[np.float32]
    """(n,) number of classes that each word names."""
    ids_of: Mapping[str, tuple[int, ...]]
    """Ids of the words by their singular, for classes that are not in the table."""
    pieces: Pieces | None


class ObjectsGuide:
    """Computes word biases from the scores of a detector's classes, by the words of :class:`ClassWords`.

    A class with a score s above :data:`NEUTRAL_SCORE` n raises its words by strength * sqrt((s - n) / (1 - n)). For a
    word that names several classes (animal, vehicle), s is the highest of their scores, and the raise is divided by the
    number of classes. If the scores of all classes of the detector are known, a word whose classes all have scores
    below n is lowered by strength * (1 - s / n).
    """

    def __init__(self, strength: float = STRENGTH, finder: NounFinder | None = None) -> None:
        """
        Args:
            finder: finds the singulars of words; None loads the pipeline in the package.

        Raises:
            ValueError: the strength is out of range.
            CoverageError: spaCy or the table of words is missing.
        """
        if not 0 <= strength < math.inf:
            raise ValueError(f"strength must be 0 or more, not {strength}")
        self._strength = strength
        self._finder = finder or NounFinder.load()
        self._table = ClassWords.load()
        self._place_of = {name: place for place, name in enumerate(sorted(self._table.classes))}
        self._naming: _NamingWords | None = None

    @property
    def description(self) -> str:
        return f"{BIAS} {self._strength:g} {NEUTRAL_SCORE:g}"

    def word_biases(self, class_scores: ClassScores, vocabulary: Vocabulary) -> WordBiases:
        """Compute the biases of the words for a frame, B = 1.

        Args:
            class_scores: scores of the frame. If they are not complete, no word is lowered.
        """
        naming = self._naming_words(vocabulary)
        biases = replace(WordBiases.none(1, len(vocabulary)), pieces=naming.pieces)
        by_place = np.full(len(self._place_of) + 1, np.nan, np.float32)  # NaN: unknown
        for name, score in class_scores.scores.items():
            if name in self._place_of:
                by_place[self._place_of[name]] = score
        scores = np.nan_to_num(by_place, nan=-1.0)[naming.classes]
        highest, best = scores.max(axis=1), scores.argmax(axis=1)
        are_known = (~np.isnan(by_place[naming.classes]) | (naming.classes == len(self._place_of))).all(axis=1)
        bias = self._raised(highest) / naming.numbers
        if class_scores.complete:
            bias = bias - np.where(are_known, self._lowered(highest), 0)
        biases.bias[0, naming.words] = bias
        groups = naming.classes[np.arange(len(best)), best] + 1
        biases.groups[0, naming.words] = np.where(bias != 0, groups, 0)
        for group, name in enumerate(sorted(class_scores.scores.keys() - self._place_of.keys()), len(by_place) + 1):
            score = np.float32(class_scores.scores[name])
            own = self._raised(score) - (self._lowered(score) if class_scores.complete else 0)
            for word in naming.ids_of.get(name, ()) if own else ():
                biases.bias[0, word], biases.groups[0, word] = own, group
        return biases

    def _raised(self, scores: NDArray[np.float32] | np.float32) -> Any:
        """Return how much scores raise a word, before the division by the number of its classes."""
        return self._strength * np.sqrt(np.clip((scores - NEUTRAL_SCORE) / (1 - NEUTRAL_SCORE), 0, 1))

    def _lowered(self, scores: NDArray[np.float32] | np.float32) -> Any:
        """Return how much scores lower a word."""
        return self._strength * np.clip(1 - scores / NEUTRAL_SCORE, 0, 1)

    def _naming_words(self, vocabulary: Vocabulary) -> _NamingWords:
        """Find the words of a vocabulary that name classes. A word in several pieces has the id of its first piece."""
        if self._naming is not None and self._naming.vocabulary is vocabulary:
            return self._naming
        ids_of: dict[str, tuple[int, ...]] = {}
        naming: dict[int, list[int]] = {}
        for index, singular in enumerate(self._finder.singulars(vocabulary.words)):
            if not singular or singular in self._table.never or vocabulary.continues(index):
                continue
            ids_of[singular] = (*ids_of.get(singular, ()), index)
            if classes := self._table.classes_of.get(singular):
                naming[index] = sorted(self._place_of[name] for name in classes)
        pieces = class_pieces(vocabulary)
        for word, classes in self._table.classes_of.items():
            split = vocabulary.split(word) if classes and pieces is not None else []
            if pieces is not None and len(split) > 1 and split[1] in pieces.seconds[split[0]]:
                places = {self._place_of[name] for name in classes} | {*naming.get(split[0], ())}
                naming[split[0]] = sorted(places)
        width = max(map(len, naming.values()), default=1)
        padded = [[*places, *[len(self._place_of)] * (width - len(places))] for places in naming.values()]
        self._naming = _NamingWords(
            vocabulary,
            np.array(list(naming), np.intp),
            np.array(padded, np.intp).reshape(len(naming), width),
            np.array([len(places) for places in naming.values()], np.float32),
            ids_of,
            pieces,
        )
        return self._naming


def guide_words(captioner: Captioner, choice: str = AUTO, strength: float = STRENGTH) -> Captioner:
    """Let the objects that a captioner detects guide its words.

    Args:
        choice: ``off``, ``bias``, or ``auto``: ``bias`` where the captioner has a detector, its bundle takes a guide
            and spaCy is installed, else ``off``.
        strength: as :data:`STRENGTH`.

    Returns:
        The captioner.

    Raises:
        ValueError: the choice is unknown, or the strength is negative.
        BundleError, CoverageError: not with ``auto``; the bundle takes no guide, or spaCy is missing.
    """
    if choice not in GUIDE_CHOICES:
        raise ValueError(f"{choice!r} is not one of {', '.join(GUIDE_CHOICES)}")
    if choice != AUTO:
        captioner.guide = None if choice == OFF else ObjectsGuide(strength)
    elif captioner.detector is not None and captioner.bundle.can_be_guided:
        with suppress(CoverageError):
            captioner.guide = ObjectsGuide(strength)
    return captioner
