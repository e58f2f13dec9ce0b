"""Human captions of other photographs whose every word fits what is seen in this one."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors
from training.data.tokenizer import tokenize
from training.datagen.rooms.evidence import Evidence
from training.datagen.rooms.words import (
    COLOURS,
    NUMBERS,
    PICTURE_OF,
    ROOM_NOUNS,
    SUPPORT,
    is_plural,
    plain,
    plural,
    singular,
    words_in,
)

MIN_WORDS, MAX_WORDS = 6, 14
SAME_MEANING = 0.97
"""Cosine of two captions' mean word vectors from which on they say the same."""
# Words that say nothing which could be untrue of a picture with the nouns around them.
_SAFE = frozenset(
    words_in(
        """
    a an the and with of in on to by next near beside under above over between against along around
    top corner middle end area space inside is are sits sitting has have having standing stands there some
    it its that placed hanging hangs containing contains nice it's this into up filled furnished
    lot topped underneath set full
    """
    )
)
# Adjectives that no teacher can judge, and that a sentence can do without.
_OPINIONS = frozenset(
    words_in(
        """
    small large big huge nice clean modern old very little colorful fancy plain dirty empty bright dark pretty
    beautiful neat tidy cozy messy cluttered simple lovely tall long open unmade made comfortable spacious new
    antique vintage stylish
    """
    )
)
_MANY = frozenset({"several", "many", "multiple", "lots", "various", "couple", "pair", "row", "rows", "both"})
_COUNT_WORDS = {name: number for number, name in enumerate(NUMBERS) if number}
_UNCOUNTED = frozenset(
    words_in(
        """
    cabinet cupboard wall counter countertop curtain shelf pillow cushion tree building mountain plant flower
    drawer book window blind tile stair field cloud rock picture painting hill
    """
    )
)
_COMPOUNDS = tuple(noun for noun in (*SUPPORT, *sorted(ROOM_NOUNS)) if " " in noun)
_USABLE_STEMS = (
    _SAFE
    | _MANY
    | _COUNT_WORDS.keys()
    | COLOURS
    | {"wooden", "wood", "desktop", "screen", "set"}
    | {word for noun in (*SUPPORT, *ROOM_NOUNS) for word in noun.split()}
)
_USABLE = _USABLE_STEMS | {plural(word) for word in _USABLE_STEMS}
_KEPT = 60
_WORN = 0.12
"""What earlier uses of a sentence cost it (times their root), so that no sentence is learnt by heart."""
_MAX_USES = 40
_BACKGROUND = frozenset({"wall", "floor", "ceiling", "furniture"})
_BROKEN = re.compile(
    r"\b(?:an?|the|with|in|of|on|by|to) (?:and|of|with|in|,)\b"
    r"|\band and\b|\b(?:and|with|in|on|of|the|an?|it)$|^and\b|wall and on|table on a lamp"
    r"|counter bathroom|standing toilet|^up |^in (?:a|the) \w+$"
)


@dataclass(frozen=True)
class Candidate:
    """A caption that talks about nothing but what teachers could see."""

    text: str
    words: tuple[str, ...]
    nouns: tuple[tuple[str, bool], ...]
    """Each with whether it is a plural."""
    claims: tuple[tuple[str, str], ...]
    """A colour or number, and the noun that it is said of."""
    direction: np.ndarray
    """(D,) unit mean of the words' vectors."""


class Pool:
    """Captions to choose from."""

    def __init__(self, texts: Iterable[str], finder: NounFinder, vectors: WordVectors) -> None:
        """Keeps those captions that can be checked word by word.

        Args:
            texts: captions as written.
            finder: as :func:`noun_finder` makes it.
            vectors: to tell captions that mean the same.
        """
        found: dict[str, Candidate] = {}
        for text in tqdm(list(texts), "captions", unit="caption", mininterval=1):
            for variant in _variants(plain(text)):
                if variant not in found and (candidate := _candidate(variant, finder, vectors)) is not None:
                    found[variant] = candidate
        self.candidates = [found[text] for text in sorted(found)]
        self._uses = [0] * len(self.candidates)

    def fitting(self, evidence: Evidence, wanted: int) -> list[str]:
        """At most ``wanted`` captions, the one that covers most of what is seen first.

        All nouns of each are supported, its colours and numbers are not contradicted, and no two say the same. A
        sentence that other photographs have already is chosen less gladly.
        """
        ranked = []
        for place, candidate in enumerate(self.candidates):
            score = _score(candidate, evidence)
            if score > 0 and self._uses[place] < _MAX_USES:
                ranked.append((_WORN * self._uses[place] ** 0.5 - score, place))
        chosen: list[Candidate] = []
        for _, place in sorted(ranked)[:_KEPT]:
            candidate = self.candidates[place]
            if len(chosen) < wanted and not any(_same(candidate, other) for other in chosen):
                chosen.append(candidate)
                self._uses[place] += 1
        return [candidate.text for candidate in chosen]


def noun_finder() -> NounFinder:
    """The project's own, which takes names of rooms and furniture of several words for one noun."""
    return NounFinder.load(compounds=_COMPOUNDS)


def _variants(text: str) -> list[str]:
    """A caption without opinions, and the same without its colours: what is left is still a person's sentence."""
    text = PICTURE_OF.sub("", text)
    words = [word for word in text.split() if word.strip(",") not in _OPINIONS]
    uncoloured = [
        word
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if not (word in COLOURS and before != "and" and after.isalpha() and after not in _SAFE)
    ]
    return list(dict.fromkeys(_with_articles(kept) for kept in (words, uncoloured)))


def _with_articles(words: Sequence[str]) -> str:
    """The words with ``a`` or ``an`` as what follows now needs it."""
    fixed = [
        ("an" if after[0] in "aeiou" else "a") if word in ("a", "an") and after else word
        for word, after in zip(words, [*words[1:], ""], strict=True)
    ]
    return " ".join(fixed)


def _candidate(text: str, finder: NounFinder, vectors: WordVectors) -> Candidate | None:
    words = tokenize(text)
    # The tagger is slow: most captions have a word that no noun of the list explains.
    if not MIN_WORDS <= len(words) <= MAX_WORDS or _BROKEN.search(text) or any(word not in _USABLE for word in words):
        return None
    text = re.sub(r"\b(?:tv|television) (?:set|screen)\b", "television", text).replace("desktop computer", "computer")
    nouns: list[tuple[str, bool]] = []
    rest = text
    for noun in sorted(finder.nouns(text), key=lambda noun: -noun.start):
        lemma = noun.lemma if noun.lemma in SUPPORT or noun.lemma in ROOM_NOUNS else singular(noun.lemma)
        if lemma in SUPPORT or lemma in ROOM_NOUNS:
            nouns.append((lemma, is_plural(noun.text.lower())))
            rest = f"{rest[: noun.start]}@{lemma.replace(' ', '_')} {rest[noun.end :]}"
    nouns.reverse()
    claims = []
    waiting: list[str] = []
    for token in rest.replace(",", " ").split():
        if token.startswith("@"):
            claims += [(word, token[1:].replace("_", " ")) for word in waiting]
            waiting = []
        elif token in COLOURS or token in _COUNT_WORDS or token in _MANY or token in ("wooden", "wood"):
            waiting.append(token)
        elif token not in _SAFE:
            return None
        elif token not in ("and", "of", "large", "small", "a"):
            if waiting:
                return None
    names = [noun for noun, _ in nouns]
    telling = set(names) - _BACKGROUND - ROOM_NOUNS
    if waiting or len(telling) < 2 or len(set(names)) < len(names) or "person" in names:
        return None
    mean = vectors.mean(words)
    if mean is None:
        return None
    return Candidate(text, tuple(words), tuple(nouns), tuple(claims), mean / max(float(np.linalg.norm(mean)), 1e-9))


def _score(candidate: Candidate, evidence: Evidence) -> float:
    score = 0.0
    rooms = set(evidence.rooms)
    seen: set[str] = set()
    for noun, many in candidate.nouns:
        if noun in ROOM_NOUNS:
            if noun not in rooms:
                return 0.0
            score += 0.5 if noun == "room" else 1.5
            continue
        if noun not in evidence.sure:
            return 0.0
        if many and noun not in _UNCOUNTED and not _at_least(evidence, noun, 2):
            return 0.0
        if noun not in seen:
            score += 1 + evidence.nouns[noun] ** 0.5 + (noun in evidence.human)
        seen.add(noun)
    for claim, noun in candidate.claims:
        if not _agrees(claim, noun, evidence):
            return 0.0
        score += 0.3
    return score


def _at_least(evidence: Evidence, noun: str, number: int) -> bool:
    return evidence.counts.get(noun, (0, 0))[0] >= number


def _agrees(claim: str, noun: str, evidence: Evidence) -> bool:
    if claim in _COUNT_WORDS:
        number = _COUNT_WORDS[claim]
        return number == 1 or evidence.counted(noun) == number
    if claim in _MANY:
        needed = 2 if claim in ("couple", "pair", "both") else 3
        return _at_least(evidence, noun, needed) and (needed == 3 or evidence.counted(noun) == 2)
    if noun in ROOM_NOUNS:
        return claim in evidence.colours.get("wall", ())
    if claim in ("wooden", "wood"):
        return "brown" in evidence.colours.get(noun, ())
    return {"grey": "gray"}.get(claim, claim) in evidence.colours.get(noun, ())


def _same(one: Candidate, other: Candidate) -> bool:
    """Whether two captions say nearly the same: the same nouns, or the same meaning by word vectors."""
    nouns, others = {noun for noun, _ in one.nouns}, {noun for noun, _ in other.nouns}
    shared = len(nouns & others) / len(nouns | others)
    return shared > 0.7 or (shared > 0.5 and float(one.direction @ other.direction) >= SAME_MEANING)


def words_of(texts: Sequence[str], minimum: int) -> frozenset[str]:
    """Words that occur at least so often in captions."""
    counts: dict[str, int] = {}
    for text in texts:
        for word in tokenize(text):
            counts[word] = counts.get(word, 0) + 1
    return frozenset(word for word, count in counts.items() if count >= minimum)
