"""Score captions against the classes of objects: :class:`NounCoverage`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from smart_caption_ros.detection.class_names import COCO_CLASSES, normalise
from smart_caption_ros.errors import CoverageError
from smart_caption_ros.grounding.assignment import (
    CoverageOptions,
    CoverageResult,
    NounMatch,
    best_assignment,
    named_class,
)
from smart_caption_ros.grounding.class_words import read_synonyms
from smart_caption_ros.grounding.nouns import Noun, NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors

_CACHED_WORDS = 20_000
T = TypeVar("T")


class NounCoverage:
    """Scores captions against classes of objects; created by :meth:`load`. Not thread-safe."""

    def __init__(
        self,
        finder: NounFinder,
        vectors: WordVectors,
        options: CoverageOptions | None = None,
        synonyms: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.finder = finder
        self.vectors = vectors
        self.options = options or CoverageOptions()
        self._synonyms = synonyms or {}
        self._directions: dict[str, NDArray[np.float32] | None] = {}
        if self.options.synonyms and not self._synonyms:
            raise CoverageError("synonyms are to count, but no list of them was given")

    @classmethod
    def load(
        cls,
        pipeline: str | os.PathLike[str] | None = None,
        word_vectors: str | os.PathLike[str] | None = None,
        *,
        synonyms: str | os.PathLike[str] | None = None,
        class_names: Iterable[str] = (),
        options: CoverageOptions | None = None,
    ) -> "NounCoverage":
        """Load the tagger, the word vectors and the synonyms.

        Args:
            class_names: classes that captions may name in addition to COCO's, see :meth:`NounFinder.load`.

        Raises:
            CoverageError: something is missing or malformed.
        """
        try:
            import scipy.optimize  # noqa: F401  (imported here, because that would delay the first caption)
        except ImportError as error:
            raise CoverageError(f"noun coverage needs SciPy ({error}): pip install scipy") from error
        coverage = cls(
            NounFinder.load(pipeline, (*COCO_CLASSES, *class_names)),
            WordVectors.load(word_vectors),
            options,
            read_synonyms(Path(synonyms)) if synonyms is not None else None,
        )
        coverage.score("a dog", ["dog"])
        return coverage

    def score(self, caption: str, classes: Sequence[str]) -> CoverageResult:
        """Score a caption against the classes of the objects in the image.

        Args:
            caption: one sentence; it may be empty.
            classes: class names in any of the usual spellings. Repeated ones count once, or each with
                ``options.class_counts``.

        Raises:
            ValueError: a class name is empty.
        """
        return self.score_nouns(self.finder.nouns(caption), classes)

    def score_nouns(self, nouns: Sequence[Noun], classes: Sequence[str]) -> CoverageResult:
        """Score nouns that :attr:`finder` has found; see :meth:`score`."""
        names = [normalise(name) for name in classes]
        if not all(names):
            raise ValueError(f"class {names.index('') + 1} of {len(names)} has an empty name")
        places, counted = list(range(len(names))), list(nouns)
        if not self.options.class_counts:
            places = _first_of_each(places, key=names.__getitem__)
            counted = _first_of_each(counted, key=lambda noun: noun.lemma)
        given, known = [classes[place] for place in places], [names[place] for place in places]
        similarities = self._similarities(known, counted)
        profits = np.where(similarities >= self.options.minimum_similarity, similarities, 0)
        pairs = best_assignment(profits)
        assigned = {column: row for row, column in pairs}
        support_similarity = self.options.support_similarity
        named = [
            named_class(noun, given, similarities[:, column], assigned.get(column), support_similarity)
            for column, noun in enumerate(counted)
        ]

        def match(row: int, column: int, similarity: float) -> NounMatch:
            return NounMatch(counted[column], given[row], places[row], float(similarity))

        matches = tuple(match(row, column, profits[row, column]) for row, column in pairs)
        support = tuple(
            match(row, column, similarities[row, column]) for column, row in enumerate(named) if row is not None
        )
        unknown_nouns = [noun.lemma for noun in counted if self._direction(self._word(noun)) is None]
        unknown_classes = [name for name, plain in zip(given, known, strict=True) if self._direction(plain) is None]
        return CoverageResult(
            coverage=min(1.0, sum(found.similarity for found in matches) / len(given)) if given else None,
            noun_support=len(support) / len(named) if named else None,
            matches=matches,
            support=support,
            nouns=tuple(nouns),
            classes=tuple(given),
            class_indices=tuple(places),
            missed_classes=tuple(dict.fromkeys(name for row, name in enumerate(given) if row not in named)),
            unsupported_nouns=tuple(
                dict.fromkeys(noun.lemma for noun, row in zip(counted, named, strict=True) if row is None)
            ),
            out_of_vocabulary_nouns=tuple(dict.fromkeys(unknown_nouns)),
            out_of_vocabulary_classes=tuple(dict.fromkeys(unknown_classes)),
        )

    def _similarities(self, classes: list[str], nouns: Sequence[Noun]) -> NDArray[np.float32]:
        """Compute similarities, (len(classes), len(nouns)): cosine clipped at 0; 1 for equal names and synonyms."""
        similar = np.zeros((len(classes), len(nouns)), np.float32)
        if similar.size:
            similar = self._stack(classes) @ self._stack([self._word(noun) for noun in nouns]).T
            np.clip(similar, 0, 1, out=similar)
        for column, noun in enumerate(nouns):
            # Some class names are plurals (skis), and some pipelines give wrong singulars (scissor).
            same = {noun.lemma, normalise(noun.text)}
            meant = set().union(*(self._synonyms.get(word, ()) for word in same)) if self.options.synonyms else set()
            for row, name in enumerate(classes):
                if name in same or name in meant:
                    similar[row, column] = 1
        return similar

    def _word(self, noun: Noun) -> str:
        """Choose the word to look up for a noun: its lemma, or its form in the caption if only that one is known."""
        form = normalise(noun.text)
        return form if self._direction(noun.lemma) is None and self._direction(form) is not None else noun.lemma

    def _stack(self, words: list[str]) -> NDArray[np.float32]:
        nothing = np.zeros(self.vectors.dimension, np.float32)
        directions = (self._direction(word) for word in words)
        return np.stack([nothing if direction is None else direction for direction in directions])

    def _direction(self, name: str) -> NDArray[np.float32] | None:
        """Look up the unit vector of a word, or of the mean of a phrase; None if no word is known."""
        if name not in self._directions:
            if len(self._directions) >= _CACHED_WORDS:
                self._directions.clear()
            mean = self.vectors.mean(name.split())
            length = 0.0 if mean is None else float(np.linalg.norm(mean))
            self._directions[name] = None if mean is None or length == 0 else mean / np.float32(length)
        return self._directions[name]


def _first_of_each(values: Iterable[T], key: Callable[[T], str]) -> list[T]:
    first: dict[str, T] = {}
    for value in values:
        first.setdefault(key(value), value)
    return list(first.values())
