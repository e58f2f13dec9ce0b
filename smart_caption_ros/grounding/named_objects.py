"""The objects of a frame that the nouns of its caption name."""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from smart_caption_ros.captioning import Caption, DetectedObject
from smart_caption_ros.captioning.vocabulary import word_starts
from smart_caption_ros.grounding import NounCoverage


@dataclass(frozen=True)
class GroundedNoun:
    """A noun of a caption and the object that it names."""

    text: str
    """As in the caption; several words for a compound."""
    lemma: str
    word_index: int
    """Index of its first word in the caption's words."""
    object_index: int | None
    """Index of the named object in the caption's objects; None if the noun names no object."""
    similarity: float
    """Of the word vectors of noun and class, in [0, 1]; 0 if the noun names no object."""


@dataclass(frozen=True)
class Grounding:
    """The nouns of a caption, the objects that they name, and noun coverage."""

    nouns: tuple[GroundedNoun, ...]
    """All nouns of the caption, in order."""
    coverage: float | None
    """Of the classes of the objects (SMArT, Eq. 10), in [0, 1]; None without objects."""
    noun_support: float | None
    """Share of the distinct nouns that name an object, in [0, 1]; None without nouns."""
    missed_classes: tuple[str, ...]
    """Classes of the objects that no noun names."""
    unsupported_nouns: tuple[str, ...]
    """Lemmas of the nouns that name no object."""
    out_of_vocabulary_nouns: tuple[str, ...]
    """Lemmas without a word vector; they match by lemma alone."""
    time_s: float


def ground_caption(coverage: NounCoverage, caption: Caption) -> Grounding:
    """Match the nouns of a caption with its objects.

    :func:`smart_caption_ros.grounding.assignment.named_class` decides which class a noun names. Among the objects of
    that class, the noun names one that the fewest preceding nouns name, and of these the one with the highest score.
    """
    started = time.perf_counter()
    result = coverage.score(caption.text, [detected.class_name for detected in caption.objects])
    starts = word_starts([word.text for word in caption.words], caption.text)
    named = {match.noun.lemma: match for match in result.support}
    named_before: Counter[int] = Counter()
    nouns = []
    for noun in result.nouns:
        index, similarity = None, 0.0
        if (match := named.get(noun.lemma)) is not None:
            index, similarity = _object_of(match.class_name, caption.objects, named_before), match.similarity
            named_before[index] += 1
        # Counted between spaces if the caption has no word list.
        word_index = bisect_right(starts, noun.start) - 1 if starts else noun.word_index
        nouns.append(GroundedNoun(noun.text, noun.lemma, word_index, index, similarity))
    return Grounding(
        nouns=tuple(nouns),
        coverage=result.coverage,
        noun_support=result.noun_support,
        missed_classes=result.missed_classes,
        unsupported_nouns=result.unsupported_nouns,
        out_of_vocabulary_nouns=result.out_of_vocabulary_nouns,
        time_s=time.perf_counter() - started,
    )


def _object_of(class_name: str, objects: Sequence[DetectedObject], named_before: Counter[int]) -> int:
    same = [index for index, detected in enumerate(objects) if detected.class_name == class_name]
    return min(same, key=lambda index: (named_before[index], -objects[index].score))
