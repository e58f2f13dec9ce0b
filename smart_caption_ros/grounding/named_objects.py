"""Which of the objects in front of the camera a caption names: its nouns, each with its object.

Coverage (SMArT, Sec. IV-B) compares a sentence with classes by their word vectors, which know likeness and not
identity: a room is like a dining table. Here a table of words (`coverage.ClassWords`) decides first which noun may
name which class, and the answer is led back to the words of the caption and to the boxes.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding import ClassWords, Noun, NounCoverage


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
    """Of the word vectors of noun and class, 0 to 1; 0 where no object answers to it."""


@dataclass(frozen=True)
class Grounding:
    """What a caption names of the objects that were found with it."""

    nouns: tuple[GroundedNoun, ...]
    """All nouns of the caption in its order."""
    coverage: float | None
    """Of the classes of the objects (SMArT, Eq. 10), in [0, 1]; None where there are no objects."""
    noun_support: float | None
    """Share of the distinct nouns that name an object, in [0, 1]; None where there are no nouns."""
    missed_classes: tuple[str, ...]
    """Classes of the objects that no noun names."""
    unsupported_nouns: tuple[str, ...]
    """Lemmas of the nouns that name no object."""
    out_of_vocabulary_nouns: tuple[str, ...]
    """Lemmas without a word vector: they match by lemma alone."""
    time_s: float
    """How long the matching took."""


def ground(coverage: NounCoverage, caption: Caption) -> Grounding:
    """Match the nouns of a caption with its objects.

    A noun may name an object if it is the class' name, or a synonym in the list that `coverage` has; else if the table
    of words puts it under that class; and where the table does not know the noun or the class, if their similarity is
    at least ``support_similarity``. Of several classes it names the one that coverage assigned it to, else the most
    similar one. Of several objects of that class it is the surest one that no noun before it names; where each is named
    already it is the surest.

    Args:
        coverage: finds the nouns and scores them.
        caption: a caption with its objects; there may be none.
    """
    started = time.perf_counter()
    result = coverage.score(caption.text, [each.class_name for each in caption.objects])
    starts = word_starts([word.text for word in caption.words])
    assigned = {match.noun.lemma: match.class_name for match in result.matches}
    used: Counter[int] = Counter()
    chosen: dict[str, tuple[str, float] | None] = {}
    nouns = []
    for noun in result.nouns:
        if noun.lemma not in chosen:
            chosen[noun.lemma] = _class_of(noun, result.classes, assigned.get(noun.lemma), coverage)
        place, similarity = None, 0.0
        if (found := chosen[noun.lemma]) is not None:
            class_name, similarity = found
            place = _object_of(class_name, caption.objects, used)
            used[place] += 1
        nouns.append(GroundedNoun(noun.text, noun.lemma, _word_index(noun, starts), place, similarity))
    named = {found[0] for found in chosen.values() if found is not None}
    unsupported = tuple(lemma for lemma, found in chosen.items() if found is None)
    return Grounding(
        nouns=tuple(nouns),
        coverage=result.coverage,
        noun_support=1 - len(unsupported) / len(chosen) if chosen else None,
        missed_classes=tuple(dict.fromkeys(name for name in result.classes if name not in named)),
        unsupported_nouns=unsupported,
        out_of_vocabulary_nouns=result.out_of_vocabulary_nouns,
        time_s=time.perf_counter() - started,
    )


def _class_of(
    noun: Noun, classes: Sequence[str], assigned: str | None, coverage: NounCoverage
) -> tuple[str, float] | None:
    """The class that a noun names, and how similar the two are; None where it names none of them."""
    similarities = dict(zip(classes, coverage.similarities(noun, classes), strict=True)) if classes else {}
    allowed = [name for name in classes if _may_name(noun, name, similarities[name], coverage)]
    if not allowed:
        return None
    best = assigned if assigned in allowed else max(allowed, key=lambda name: similarities[name])
    return best, similarities[best]


def _may_name(noun: Noun, class_name: str, similarity: float, coverage: NounCoverage) -> bool:
    if similarity == 1.0:  # the class' own name, or a synonym that the user's list has
        return True
    verdict = ClassWords.load().verdict(noun.lemma, normalise(class_name))
    return verdict if verdict is not None else 0 < similarity >= coverage.options.support_similarity


def _object_of(class_name: str, objects: Sequence[DetectedObject], used: Counter[int]) -> int:
    same = [place for place, each in enumerate(objects) if each.class_name == class_name]
    return min(same, key=lambda place: (used[place], -objects[place].score))


def _word_index(noun: Noun, starts: list[int]) -> int:
    """The word that a noun begins in; spaces count them where a caption comes without its words."""
    return bisect_right(starts, noun.start) - 1 if starts else noun.word_index
