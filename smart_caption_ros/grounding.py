"""Which of the objects in front of the camera a caption names: its nouns, each with its object.

Coverage (SMArT, Sec. IV-B) compares a sentence with classes; here its answer is led back to the words of the caption
and to the boxes.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.coverage import Match, Noun, NounCoverage


@dataclass(frozen=True)
class GroundedNoun:
    """A noun of a caption and the object that it names."""

    text: str
    """As the caption has it; several words for a compound."""
    lemma: str
    word_index: int
    """Where in the caption's words it begins."""
    object_index: int | None
    """Where in the objects the one stands that it names; None where no object answers to it."""
    similarity: float
    """Of noun and class, 0 to 1; 0 where no object answers to it."""


@dataclass(frozen=True)
class Grounding:
    """What a caption names of the objects that were found with it."""

    nouns: tuple[GroundedNoun, ...]
    """All nouns of the caption in its order."""
    coverage: float | None
    """Of the classes of the objects (SMArT, Eq. 10), in [0, 1]; None where there are no objects."""
    noun_support: float | None
    """Share of the distinct nouns that a class supports, in [0, 1]; None where there are no nouns."""
    missed_classes: tuple[str, ...]
    """Classes that no noun names."""
    unsupported_nouns: tuple[str, ...]
    """Lemmas of the nouns that no class supports."""
    out_of_vocabulary_nouns: tuple[str, ...]
    """Lemmas without a word vector: they match by lemma alone."""
    time_s: float
    """How long the matching took."""


def ground(coverage: NounCoverage, caption: Caption) -> Grounding:
    """Match the nouns of a caption with its objects.

    A noun names an object of the class that it was assigned to, or else of the class that is most similar to it, where
    the similarity is at least ``support_similarity``. Of several objects of that class it is the surest one that no
    noun before it names; where each is named already it is the surest.

    Args:
        coverage: finds the nouns and scores them.
        caption: a caption with its objects; there may be none.
    """
    started = time.perf_counter()
    result = coverage.score(caption.text, [each.class_name for each in caption.objects])
    starts = word_starts([word.text for word in caption.words])
    minimum = coverage.options.support_similarity
    chosen = {match.noun.lemma: match for match in result.support}
    chosen |= {match.noun.lemma: match for match in result.matches if match.similarity >= minimum}
    used: Counter[int] = Counter()
    nouns = []
    for noun in result.nouns:
        match = chosen.get(noun.lemma)
        place = _object_of(match, caption.objects, used) if match else None
        if place is not None:
            used[place] += 1
        nouns.append(
            GroundedNoun(noun.text, noun.lemma, _word_index(noun, starts), place, match.similarity if match else 0.0)
        )
    return Grounding(
        nouns=tuple(nouns),
        coverage=result.coverage,
        noun_support=result.noun_support,
        missed_classes=result.missed_classes,
        unsupported_nouns=result.unsupported_nouns,
        out_of_vocabulary_nouns=result.out_of_vocabulary_nouns,
        time_s=time.perf_counter() - started,
    )


def _object_of(match: Match, objects: Sequence[DetectedObject], used: Counter[int]) -> int:
    same = [place for place, each in enumerate(objects) if each.class_name == match.class_name]
    return min(same, key=lambda place: (used[place], -objects[place].score))


def _word_index(noun: Noun, starts: list[int]) -> int:
    """The word that a noun begins in; spaces count them where a caption comes without its words."""
    return bisect_right(starts, noun.start) - 1 if starts else noun.word_index
