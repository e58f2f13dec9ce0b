"""The words that detected objects raise and lower in a caption: :class:`ObjectsGuide` and :func:`guide_words`.

docs/objects.md describes the rules and what they do to captions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from smart_caption_ros.captioning import Captioner, DetectedObject
from smart_caption_ros.captioning.guidance import GuideMode, WordBiases
from smart_caption_ros.captioning.vocabulary import Vocabulary
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.class_words import ClassWords
from smart_caption_ros.grounding.errors import CoverageError
from smart_caption_ros.grounding.nouns import NounFinder

AUTO = "auto"
GUIDE_CHOICES = (AUTO, *(mode.value for mode in GuideMode))
"""What :func:`guide_words` takes."""
STRENGTH = 2.0
"""Bias of a word whose class was found with score 1, natural logarithm."""
SURE_SCORE = 0.5
"""Objects with a lower score raise no word."""
CONTRADICTION_SHARE = 0.25
"""Bias of a contradicting class, as a share of the bias of the class that it contradicts."""


class ObjectsGuide:
    """Computes word biases from detected objects, by the words of :class:`ClassWords`.

    A class that was found with at least :data:`SURE_SCORE` raises its words by strength * score. A word that names n
    classes (animal, vehicle) is raised by the n-th part. A class that was not found at all, and shares a word with a
    class that was surely found (both are an animal), contradicts it: words that name it and no found class are lowered.
    Other classes that were not found are left alone, because detectors overlook most objects.
    """

    def __init__(
        self,
        mode: GuideMode | str = GuideMode.BOTH,
        strength: float = STRENGTH,
        contradiction_share: float = CONTRADICTION_SHARE,
        sure_score: float = SURE_SCORE,
        finder: NounFinder | None = None,
    ) -> None:
        """
        Args:
            mode: which of the two, biasing words and ranking captions, is done.
            strength: bias of a word whose class was found with score 1, natural logarithm.
            contradiction_share: see :data:`CONTRADICTION_SHARE`.
            sure_score: see :data:`SURE_SCORE`.
            finder: knows the singulars of words; None loads the one that ships.

        Raises:
            ValueError: the mode is unknown, or a number is out of range.
            CoverageError: spaCy or the table of words is missing.
        """
        self.mode = GuideMode(mode)
        for name, value, highest in (
            ("strength", strength, math.inf),
            ("contradiction_share", contradiction_share, 1.0),
            ("sure_score", sure_score, 1.0),
        ):
            if not 0 <= value <= highest:
                raise ValueError(f"{name} must lie between 0 and {highest:g}, not {value}")
        self._strength, self._share, self._sure = strength, contradiction_share, sure_score
        self._finder = finder or NounFinder.load()
        self._table = ClassWords.load()
        self._relatives: dict[str, set[str]] = defaultdict(set)
        for names in self._table.classes_of.values():
            for name in names:
                self._relatives[name] |= names - {name}
        self._singulars: tuple[Vocabulary, tuple[str, ...]] | None = None

    @property
    def description(self) -> str:
        return f"{self.mode.value} {self._strength:g} {self._share:g} {self._sure:g}"

    def word_biases(self, objects: Sequence[DetectedObject], vocabulary: Vocabulary) -> WordBiases:
        """Compute the biases of the words for a frame, B = 1.

        Args:
            objects: the detected objects.
            vocabulary: of the captioner.
        """
        best: dict[str, float] = defaultdict(float)
        for each in objects:
            name = normalise(each.class_name)
            best[name] = max(best[name], each.score)
        sure = sorted((name for name, score in best.items() if score >= self._sure), key=lambda name: -best[name])
        lowered = {
            name: max(best[other] for other in against)
            for name in sorted(self._table.classes - best.keys())
            if (against := [other for other in sure if other in self._relatives[name]])
        }
        biases = WordBiases.none(1, len(vocabulary))
        groups = {name: number for number, name in enumerate((*sure, *lowered), 1)}
        for index, word in enumerate(self._singulars_of(vocabulary)):
            if not word:
                continue
            meant = self._table.classes_of.get(word, frozenset())
            named = self._table.classes_named_by(word, best)
            if chosen := next((name for name in sure if name in named), None):
                bias = self._strength * best[chosen] / max(1, len(meant))
            elif not named and meant and meant <= lowered.keys():
                chosen = max(meant, key=lambda name: (lowered[name], name))
                bias = -self._strength * self._share * lowered[chosen]
            else:
                continue
            biases.bias[0, index], biases.groups[0, index] = bias, groups[chosen]
        return biases

    def _singulars_of(self, vocabulary: Vocabulary) -> tuple[str, ...]:
        """The singular of each word; empty for words that name no object, and for pieces that continue a word."""
        if self._singulars is None or self._singulars[0] is not vocabulary:
            singulars = self._finder.singulars(vocabulary.words)
            self._singulars = (
                vocabulary,
                tuple(
                    "" if word in self._table.never or vocabulary.continues(index) else word
                    for index, word in enumerate(singulars)
                ),
            )
        return self._singulars[1]


def guide_words(captioner: Captioner, choice: str = AUTO, strength: float = STRENGTH) -> Captioner:
    """Let the objects that a captioner detects guide its words.

    Args:
        captioner: is changed.
        choice: a :class:`GuideMode`, or ``auto``: ``bias`` where the captioner has a detector, its bundle takes a guide
            and spaCy is installed, else ``off``.
        strength: bias of a word whose class was found with score 1, natural logarithm.

    Returns:
        The captioner.

    Raises:
        ValueError: the choice is unknown, or the strength is negative.
        BundleError: the bundle takes no guide; not with ``auto``.
        CoverageError: spaCy or the table of words is missing; not with ``auto``.
    """
    if choice != AUTO:
        captioner.guide = None if GuideMode(choice) is GuideMode.OFF else ObjectsGuide(choice, strength)
    elif captioner.detector is not None and captioner.bundle.can_be_guided:
        with suppress(CoverageError):
            captioner.guide = ObjectsGuide(GuideMode.BIAS, strength)
    return captioner
