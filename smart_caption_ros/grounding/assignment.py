"""Noun coverage (SMArT, Eq. 10): the optimal assignment between the nouns of a caption and the classes of objects.

:func:`named_class` defines for the caption node, the command line and the coverage benchmark what is named, missed and
supported: a noun is supported if it names a class; a class is missed if no noun names it. Coverage itself compares word
vectors, which measure relatedness and not identity (``room`` is close to dining table), so a table of words decides
first which class a noun names.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.class_names import normalise
from smart_caption_ros.grounding.class_words import ClassWords
from smart_caption_ros.grounding.nouns import Noun


@dataclass(frozen=True)
class CoverageOptions:
    """Options of scoring; the defaults give the SMArT paper's measure."""

    minimum_similarity: float = 0.0
    """Similarities below this count as 0."""
    synonyms: bool = False
    """Whether a noun has similarity 1 with a class if the list of synonyms has it under that class."""
    class_counts: bool = False
    """Whether to count every object and every noun, instead of distinct classes and lemmas."""
    support_similarity: float = 0.65
    """Smallest similarity with which a noun names a class, where the table of words does not decide."""

    def __post_init__(self) -> None:
        for name in ("minimum_similarity", "support_similarity"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, not {getattr(self, name)}")


@dataclass(frozen=True)
class NounMatch:
    """A noun and a class: the one it was assigned to, or the one it names."""

    noun: Noun
    class_name: str
    class_index: int
    """Index in the given classes (the first of equal ones)."""
    similarity: float
    """In (0, 1] for an assigned pair; in [0, 1] for a named class."""


@dataclass(frozen=True)
class CoverageResult:
    """Coverage of a caption, and the classes that its nouns name."""

    coverage: float | None
    """Sum of the profits / number of classes, in [0, 1]; None without classes."""
    noun_support: float | None
    """Share of the caption's distinct nouns that name a class, in [0, 1] (of all nouns with ``class_counts``); None
    without nouns."""
    matches: tuple[NounMatch, ...]
    """The optimal assignment, in the order of the classes, without pairs of profit 0."""
    support: tuple[NounMatch, ...]
    """Every noun that names a class, with that class; several nouns may name one class."""
    nouns: tuple[Noun, ...]
    """All nouns of the caption, in order, repeated ones included."""
    classes: tuple[str, ...]
    """The classes that count: the given ones without repetition, or all of them with ``class_counts``."""
    class_indices: tuple[int, ...]
    """Index of each of these classes in the given ones."""
    missed_classes: tuple[str, ...]
    """Classes that no noun names."""
    unsupported_nouns: tuple[str, ...]
    """Lemmas of the nouns that name no class."""
    out_of_vocabulary_nouns: tuple[str, ...]
    """Lemmas without a word vector; they match by lemma alone."""
    out_of_vocabulary_classes: tuple[str, ...]
    """Classes without a word vector; they match by name alone."""

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values, as printed by ``smart-caption coverage score --json``."""
        values = asdict(self)
        return {"noun_coverage": values.pop("coverage"), **values}


def best_assignment(profits: NDArray[np.floating]) -> list[tuple[int, int]]:
    """Find the assignment with the highest sum of profits, (R, C), 0 or more.

    Returns:
        Pairs (row, column), without those of profit 0.
    """
    if profits.size == 0:
        return []
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(profits, maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True) if profits[row, column] > 0]


def named_class(
    noun: Noun,
    classes: Sequence[str],
    similarities: NDArray[np.floating],
    assigned: int | None,
    support_similarity: float,
) -> int | None:
    """Decide which class a noun names: of those that it may name, the one that coverage assigned it to, else the most
    similar one.

    Args:
        similarities: (K,) of the noun to each class, in [0, 1].
        assigned: index of the class that coverage assigned the noun to, if any.
        support_similarity: as :attr:`CoverageOptions.support_similarity`.

    Returns:
        Index of the class; None if the noun names none of them.
    """
    allowed = [
        index
        for index, name in enumerate(classes)
        if _may_name(noun, name, float(similarities[index]), support_similarity)
    ]
    if not allowed:
        return None
    return assigned if assigned in allowed else max(allowed, key=lambda index: similarities[index])


def _may_name(noun: Noun, class_name: str, similarity: float, support_similarity: float) -> bool:
    if similarity == 1.0:  # the class's own name, or a synonym in the user's list
        return True
    verdict = ClassWords.load().verdict(noun.lemma, normalise(class_name))
    return verdict if verdict is not None else 0 < similarity >= support_similarity
