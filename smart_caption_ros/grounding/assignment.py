"""The optimal assignment between the nouns of a caption and the classes of objects, and what follows from it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.grounding.nouns import Noun


@dataclass(frozen=True)
class CoverageOptions:
    """How to score; the defaults are the SMArT paper's measure."""

    minimum_similarity: float = 0.0
    """Similarities below this count as 0."""
    synonyms: bool = False
    """A noun that the list of synonyms has under a class counts as the class: similarity 1."""
    class_counts: bool = False
    """Every object and every noun counts by itself, also of the same class or lemma, instead of sets."""
    support_similarity: float = 0.65
    """From here on, a noun counts as supported by a class and a class as named; no part of coverage."""

    def __post_init__(self) -> None:
        for name in ("minimum_similarity", "support_similarity"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")


@dataclass(frozen=True)
class Match:
    """A noun and the class that it was assigned to."""

    noun: Noun
    class_name: str
    """As it was given."""
    class_index: int
    """Where in the given classes it stands (the first of several that are the same)."""
    similarity: float
    """The profit, in (0, 1]."""


@dataclass(frozen=True)
class CoverageResult:
    """What a caption names of the objects in front of the camera."""

    coverage: float | None
    """Sum of the profits / number of classes, in [0, 1]; None where there are no classes."""
    noun_support: float | None
    """Share of the caption's distinct nouns that a class supports, in [0, 1] (of all nouns with ``class_counts``);
    None where there are no nouns."""
    matches: tuple[Match, ...]
    """The optimal assignment in the order of the classes, without pairs of no profit."""
    support: tuple[Match, ...]
    """Every noun that a class supports with the class most similar to it, also where that is assigned to another."""
    nouns: tuple[Noun, ...]
    """All nouns of the caption in its order, repeated ones included."""
    classes: tuple[str, ...]
    """What was counted: the given classes without repetition, or all of them with ``class_counts``."""
    class_indices: tuple[int, ...]
    """Where in the given classes those stand."""
    missed_classes: tuple[str, ...]
    """Classes with no noun assigned at ``support_similarity`` or above."""
    unsupported_nouns: tuple[str, ...]
    """Lemmas of the nouns that no class supports."""
    out_of_vocabulary_nouns: tuple[str, ...]
    """Lemmas without a word vector: they match by lemma alone."""
    out_of_vocabulary_classes: tuple[str, ...]
    """Classes without a word vector: they match by name alone."""

    def to_json(self) -> dict[str, Any]:
        """Plain values: what `smart-caption coverage score --json` prints."""
        return asdict(self)


def best_assignment(profits: NDArray[np.floating]) -> list[tuple[int, int]]:
    """Pairs (row, column) of the assignment with the highest sum of profits, without those of no profit.

    Args:
        profits: (R, C), 0 or more.
    """
    if profits.size == 0:
        return []
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(profits, maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True) if profits[row, column] > 0]


def evaluate(
    nouns: Sequence[Noun],
    counted_nouns: Sequence[Noun],
    classes: Sequence[tuple[int, str]],
    similarities: NDArray[np.floating],
    *,
    unknown_nouns: Sequence[bool],
    unknown_classes: Sequence[bool],
    options: CoverageOptions,
) -> CoverageResult:
    """Assign nouns to classes, and judge the assignment.

    Args:
        nouns: all nouns of the caption.
        counted_nouns: those that take part in the assignment, N of them.
        classes: the classes that take part, K of them: place in the given list, and name.
        similarities: (K, N), in [0, 1].
        unknown_nouns: which of the N have no word vector.
        unknown_classes: which of the K have none.
        options: how to score.
    """
    names = [name for _, name in classes]
    profits = np.where(similarities >= options.minimum_similarity, similarities, 0)
    matches, named = [], set()
    for row, column in best_assignment(profits):
        place, name = classes[row]
        matches.append(Match(counted_nouns[column], name, place, float(profits[row, column])))
        if profits[row, column] >= options.support_similarity:
            named.add(row)
    # One object may well bear several nouns (a man, a player), so support asks for a class, not for one of its own.
    # Similarity 0 supports nothing, whatever the option says.
    strongest = similarities.max(axis=0, initial=0.0)
    supported = [bool(each > 0 and each >= options.support_similarity) for each in strongest]
    support = []
    for column, noun in compress(enumerate(counted_nouns), supported):
        place, name = classes[int(similarities[:, column].argmax())]
        support.append(Match(noun, name, place, float(strongest[column])))
    return CoverageResult(
        coverage=min(1.0, sum(match.similarity for match in matches) / len(classes)) if classes else None,
        noun_support=sum(supported) / len(supported) if supported else None,
        matches=tuple(matches),
        support=tuple(support),
        nouns=tuple(nouns),
        classes=tuple(names),
        class_indices=tuple(place for place, _ in classes),
        missed_classes=tuple(dict.fromkeys(name for row, name in enumerate(names) if row not in named)),
        unsupported_nouns=_lemmas(counted_nouns, [not each for each in supported]),
        out_of_vocabulary_nouns=_lemmas(counted_nouns, unknown_nouns),
        out_of_vocabulary_classes=tuple(dict.fromkeys(compress(names, unknown_classes))),
    )


def _lemmas(nouns: Sequence[Noun], chosen: Sequence[bool]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(noun.lemma for noun in compress(nouns, chosen)))
