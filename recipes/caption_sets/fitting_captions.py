"""People's captions of other photographs that fit the objects that people labelled in a photograph.

A caption fits if all that it says is known: it names labelled objects and no other (of COCO's 80 classes), in the
number that is there, and every other word is one that people used for this photograph or that the word teacher relies
on. Of the captions that fit, those are chosen that tell most about this photograph: words count by their pointwise
mutual information with it, the logarithm of their probability here over that in all captions.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from recipes.rooms.retrieval import variants
from recipes.rooms.words import NUMERALS, without_repetitions, words_in
from training.data.inflection import singular
from training.data.tokenizer import tokenize
from training.evaluation.metrics.chair import REPLACED, Synonyms

MIN_WORDS, MAX_WORDS = 6, 14
MIN_USES, MIN_PAIR_USES = 30, 5
"""In how many captions of the pool each word, and each two words one after the other, must occur: names, misspellings
and broken phrases are rarer."""
_MAX_POSSIBLE = 2
"""Possible objects of a class up to which a caption may speak of one."""
# Words that say nothing beyond the words around them. Words of relations that labels cannot confirm ("on top of",
# "behind", "inside") are not among them.
_FUNCTION_WORDS = frozenset(
    words_in(
        """
    a an the and with of in on to by next near beside along around at from for up down into out off through its it is
    are has have having that this there some while as be being it's very
    """
    )
)
_PERSON, _END = "person", "</s>"
_GROUPS = frozenset({"group", "herd", "flock", "couple", "pair", "bunch", "crowd", "several", "many", "some", "row"})
"""Words after which a singular or plural says nothing about the number."""
_UNSURE_LABELS = {"orange": None, "bear": "teddy bear", "dog": "hot dog", "bowl": "toilet"}
"""Labels that were read from words: of a colour, or of the name of another label, which must then be there as well."""
_FEW_LABELS, _MIN_NAMED, _MIN_SHARE = 2, 2, 0.4
"""A caption names all of ``_FEW_LABELS`` labels or fewer; else at least this number and share of them."""
_MIN_ESTIMATE = 0.02
_USE_PENALTY = 0.15
_MAX_RANKED, _MAX_OVERLAP = 200, 0.6


@dataclass(frozen=True)
class LabelEvidence:
    """What is known of a photograph."""

    labels: frozenset[str]
    """Those of COCO's classes that people labelled or named."""
    words: Mapping[str, float]
    """Words that people used for it (1), and those that the word teacher relies on, with their estimates."""
    counts: Mapping[str, tuple[int, int]]
    """Labels to the number of objects that a detector found with certainty, and to that of possible ones."""


@dataclass(frozen=True)
class _Caption:
    """A caption of the pool and what it says."""

    text: str
    numbers: frozenset[tuple[str, bool]]
    """Class names with whether the caption has the plural; none where a word such as "herd" leaves it open."""
    counted: frozenset[int]
    """Numbers that it names."""


class _Mention(NamedTuple):
    """An object that a caption names."""

    name: str
    """Name of its class."""
    first: int
    last: int
    """Indices of its first and its last word."""


class FittingCaptions:
    """Captions to choose from."""

    def __init__(self, texts: Iterable[str], synonyms: Synonyms, max_uses: int) -> None:
        """Keep the captions that name an object, and index their words.

        Args:
            texts: captions as written.
            synonyms: of COCO's classes.
            max_uses: photographs that may get the same caption.
        """
        self.uses: Counter[str] = Counter()
        """Photographs that got each caption."""
        self._max_uses = max_uses
        self._synonyms = synonyms
        self._terms = frozenset(part for term in (*synonyms.class_of, *REPLACED) for part in term.split())
        tokens = [tokenize(text) for text in texts]
        frequent = Counter(word for words in tokens for word in set(words))
        self._pairs = Counter(pair for words in tokens for pair in set(pairwise((*words, _END))))
        found: dict[str, tuple[_Caption, frozenset[str], list[str]]] = {}
        for words in tokens:
            if len(words) > MAX_WORDS + 4 or any(frequent[word] < MIN_USES for word in words):
                continue
            for variant in variants(" ".join(words)):
                if variant not in found and (read := self._read(variant)) is not None:
                    found[variant] = read
        self._captions = [caption for caption, _, _ in found.values()]
        self._classes, self._named = _incidence([classes for _, classes, _ in found.values()])
        self._words, self._said = _incidence([words for _, _, words in found.values()])
        counts = np.asarray(self._said.sum(axis=0)).ravel()
        self._usual = np.log(counts / max(len(found), 1))
        """(words,) logarithm of the share of captions with each word."""
        self._roots = np.sqrt(np.maximum(np.asarray(self._said.sum(axis=1)).ravel(), 1))

    def choose(self, evidence: LabelEvidence, wanted: int) -> list[str]:
        """Choose at most ``wanted`` captions that fit, those that tell most about the photograph first."""
        labels = {name for name in evidence.labels if not _is_unsure(name, evidence.labels)}
        if not labels:
            return []
        allowed = np.array([name in evidence.labels for name in self._classes], np.float32)
        certain = np.array([name in labels for name in self._classes], np.float32)
        known = np.array([evidence.words.get(word, 0.0) for word in self._words], np.float32)
        named = self._named @ certain
        fitting = (self._named @ (1 - allowed) == 0) & (self._said @ (known == 0).astype(np.float32) == 0)
        if len(labels) <= _FEW_LABELS:
            fitting &= named == len(labels)
        else:
            fitting &= named >= max(_MIN_NAMED, _MIN_SHARE * len(labels))
        places = np.flatnonzero(fitting)
        information = np.log(np.maximum(known, _MIN_ESTIMATE)) - self._usual
        scores = self._said[places] @ information / self._roots[places] + named[places] / len(labels)
        return self._best(places, scores, evidence, wanted)

    def _best(
        self, places: NDArray[np.int64], scores: NDArray[np.float64], evidence: LabelEvidence, wanted: int
    ) -> list[str]:
        """Take the best captions with the right numbers that differ from each other and are not used too often."""
        uses = np.array([self.uses[self._captions[place].text] for place in places])
        ranked = places[np.argsort(_USE_PENALTY * uses**0.5 - scores, kind="stable")]
        right = [
            self._captions[place].text
            for place in ranked[:_MAX_RANKED]
            if self.uses[self._captions[place].text] < self._max_uses and _numbers_fit(self._captions[place], evidence)
        ]
        chosen = without_repetitions(right, _MAX_OVERLAP)[:wanted]
        self.uses.update(chosen)
        return chosen

    def _read(self, text: str) -> tuple[_Caption, frozenset[str], list[str]] | None:
        """Read the classes that a caption names and the words that must be known; None if it names no class."""
        words = tokenize(text)
        mentions = list(self._mentions(words))
        if not MIN_WORDS <= len(words) <= MAX_WORDS or not mentions:
            return None
        if any(self._pairs[pair] < MIN_PAIR_USES for pair in pairwise((*words, _END))):
            return None
        things = [mention.name for mention in mentions if mention.name != _PERSON]
        if len(set(things)) < len(things):
            return None  # "some cars, a bus and a bus"
        open_number = bool(_GROUPS & set(words))
        numbers = {(mention.name, words[mention.last] != singular(words[mention.last])) for mention in mentions}
        # "Person" is as sure as its label; "man" is not.
        sure = {
            place
            for mention in mentions
            for place in range(mention.first, mention.last + 1)
            if mention.name != _PERSON or words[place] == _PERSON
        }
        said = dict.fromkeys(word for place, word in enumerate(words) if place not in sure)
        counted = frozenset(NUMERALS.index(word) for word in said if word in NUMERALS[2:])
        caption = _Caption(text, frozenset() if open_number else frozenset(numbers), counted)
        unsure = [word for word in said if word not in _FUNCTION_WORDS and word not in NUMERALS[1:]]
        return caption, frozenset(mention.name for mention in mentions), unsure

    def _mentions(self, words: Sequence[str]) -> Iterator[_Mention]:
        """Find the objects that a caption names, by the rules of CHAIR."""
        terms = [word if word in self._terms else singular(word) for word in words]
        place = 0
        while place < len(words):
            pair = " ".join(terms[place : place + 2])
            last = place + (pair in REPLACED)
            name = self._synonyms.class_of.get(REPLACED.get(pair, terms[place]))
            if name is not None and not (terms[place] == "seat" and "toilet" in terms):
                yield _Mention(name, place, last)
            place = last + 1


def _incidence(rows: Sequence[Collection[str]]) -> tuple[list[str], sparse.csr_matrix]:
    """List the words of all rows, and mark those of each row, (rows, words) float32."""
    names = sorted({word for row in rows for word in row})
    places = {word: place for place, word in enumerate(names)}
    columns = [places[word] for row in rows for word in row]
    starts = np.cumsum([0, *map(len, rows)])
    marks = np.ones(len(columns), np.float32)
    return names, sparse.csr_matrix((marks, columns, starts), shape=(len(rows), len(names)))


def _is_unsure(label: str, labels: Collection[str]) -> bool:
    """Return whether a label was read from a word that may mean something else."""
    return label in _UNSURE_LABELS and (_UNSURE_LABELS[label] is None or _UNSURE_LABELS[label] in labels)


def _numbers_fit(caption: _Caption, evidence: LabelEvidence) -> bool:
    """Return whether a caption names one thing where there is one, and several where there are several."""
    for name, several in caption.numbers:
        certain, possible = evidence.counts.get(name, (0, 0))
        if several and certain < 2:
            return False
        # Of many people, a caption may be about one.
        if not several and name != _PERSON and (certain > 1 or possible > _MAX_POSSIBLE):
            return False
    exact = {certain for certain, possible in evidence.counts.values() if certain == possible}
    return all(number in exact or NUMERALS[number] in evidence.words for number in caption.counted)
