"""Retrieval of other photographs' captions all of whose claims are confirmed by the evidence for a photograph.

The claims of a caption are its nouns, colours and counts.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from tqdm import tqdm

from recipes.rooms.evidence import CLASSES_OF, Evidence
from recipes.rooms.places import ROOM_NOUNS
from recipes.rooms.words import COLOURS, NUMERALS, PICTURE_OF, plain, words_in
from smart_caption_ros.grounding.nouns import NounFinder
from smart_caption_ros.grounding.word_vectors import WordVectors
from training.data.inflection import is_plural, plural, singular, with_indefinite_article
from training.data.tokenizer import tokenize

MIN_WORDS, MAX_WORDS = 6, 14
# Words that claim nothing beyond the nouns around them.
SAFE_WORDS = frozenset(
    words_in(
        """
    a an the and with of in on to by next near beside under above over between against along around
    top corner middle end area space inside is are sits sitting has have having standing stands there some
    it its that placed hanging hangs containing contains nice it's this into up filled furnished
    lot topped underneath set full
    """
    )
)
# Adjectives that no teacher can confirm; they are removed from captions.
_OPINIONS = frozenset(
    words_in(
        """
    small large big huge nice clean modern old very little colorful fancy plain dirty empty bright dark pretty
    beautiful neat tidy cozy messy cluttered simple lovely tall long open unmade made comfortable spacious new
    antique vintage stylish
    """
    )
)
QUANTIFIERS = frozenset({"several", "many", "multiple", "lots", "various", "couple", "pair", "row", "rows", "both"})
COUNT_WORDS = {name: number for number, name in enumerate(NUMERALS) if number}
_USABLE_STEMS = (
    SAFE_WORDS
    | QUANTIFIERS
    | COUNT_WORDS.keys()
    | COLOURS
    | {"wooden", "wood", "desktop", "screen", "set"}
    | {word for noun in (*CLASSES_OF, *ROOM_NOUNS) for word in noun.split()}
)
_BACKGROUND = frozenset({"wall", "floor", "ceiling", "furniture"})
# Phrases broken by removing adjectives and colours, and mistakes found in the pool.
_BROKEN = re.compile(
    r"\b(?:an?|the|with|in|of|on|by|to) (?:and|of|with|in|,)\b"
    r"|\band and\b|\b(?:and|with|in|on|of|the|an?|it)$|^and\b|wall and on|table on a lamp"
    r"|counter bathroom|standing toilet|^up |^in (?:a|the) \w+$"
)


@dataclass(frozen=True)
class CheckableCaption:
    """A caption and all its claims."""

    text: str
    words: tuple[str, ...]
    nouns: tuple[tuple[str, bool], ...]
    """Each a singular and whether the caption has the plural."""
    claims: tuple[tuple[str, str], ...]
    """Each a colour, count or quantifier, and the noun that it qualifies."""
    direction: np.ndarray
    """(D,) mean of the words' vectors, unit length."""


def read_caption(text: str, finder: NounFinder, vectors: WordVectors) -> CheckableCaption | None:
    """Analyse a caption; None if it has a word that evidence cannot confirm.

    Args:
        text: the caption, as :func:`variants` returns it.
        finder: knows the names of places and supported nouns as compounds.
        vectors: of words.
    """
    words = tokenize(text)
    # Checked first because the tagger is slow: most captions have a word that rules them out.
    if not MIN_WORDS <= len(words) <= MAX_WORDS or _BROKEN.search(text) or not _usable_words().issuperset(words):
        return None
    text = re.sub(r"\b(?:tv|television) (?:set|screen)\b", "television", text).replace("desktop computer", "computer")
    nouns, rest = _marked_nouns(text, finder)
    claims = _claims(rest)
    names = [noun for noun, _ in nouns]
    informative = set(names) - _BACKGROUND - ROOM_NOUNS
    if claims is None or len(informative) < 2 or len(set(names)) < len(names) or "person" in names:
        return None
    mean = vectors.mean(words)
    if mean is None:
        return None
    direction = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return CheckableCaption(text, tuple(words), tuple(nouns), tuple(claims), direction)


def variants(caption: str) -> list[str]:
    """Return the caption without opinions, and the same without colours as well."""
    text = PICTURE_OF.sub("", plain(caption))
    words = [word for word in text.split() if word.strip(",") not in _OPINIONS]
    uncoloured = [
        word
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if not (word in COLOURS and before != "and" and after.isalpha() and after not in SAFE_WORDS)
    ]
    return list(dict.fromkeys(_with_articles(kept) for kept in (words, uncoloured)))


def _with_articles(words: Sequence[str]) -> str:
    """Join words, with ``a`` or ``an`` as the word behind the article requires."""
    fixed = [
        with_indefinite_article(after).split(" ", 1)[0] if word in ("a", "an") and after else word
        for word, after in zip(words, [*words[1:], ""], strict=True)
    ]
    return " ".join(fixed)


@cache
def _usable_words() -> frozenset[str]:
    return _USABLE_STEMS | {plural(word) for word in _USABLE_STEMS}


def _marked_nouns(text: str, finder: NounFinder) -> tuple[list[tuple[str, bool]], str]:
    """Find the confirmable nouns, and write the text with ``@noun`` in their places."""
    nouns: list[tuple[str, bool]] = []
    for noun in sorted(finder.nouns(text), key=lambda noun: -noun.start):
        lemma = noun.lemma if noun.lemma in CLASSES_OF or noun.lemma in ROOM_NOUNS else singular(noun.lemma)
        if lemma in CLASSES_OF or lemma in ROOM_NOUNS:
            nouns.append((lemma, is_plural(noun.text.lower())))
            text = f"{text[: noun.start]}@{lemma.replace(' ', '_')} {text[noun.end :]}"
    nouns.reverse()
    return nouns, text


def _claims(marked: str) -> list[tuple[str, str]] | None:
    """Assign colours and counts to the nouns behind them; None if a word is left over."""
    claims = []
    waiting: list[str] = []
    for token in marked.replace(",", " ").split():
        if token.startswith("@"):
            claims += [(word, token[1:].replace("_", " ")) for word in waiting]
            waiting = []
        elif token in COLOURS or token in COUNT_WORDS or token in QUANTIFIERS or token in ("wooden", "wood"):
            waiting.append(token)
        elif token not in SAFE_WORDS or (waiting and token not in ("and", "of", "large", "small", "a")):
            return None
    return None if waiting else claims


SAME_MEANING = 0.97
"""Minimum cosine of two captions' mean word vectors at which they mean the same."""
MAX_USES = 40
"""Photographs that may get the same caption."""
_USE_PENALTY = 0.12
"""Score that a caption loses, times the square root of its uses, so that few photographs share a caption."""
_MAX_RANKED = 60
"""Number of a photograph's best captions that are compared for repetitions."""
_UNCOUNTED = frozenset(
    words_in(
        """
    cabinet cupboard wall counter countertop curtain shelf pillow cushion tree building mountain plant flower
    drawer book window blind tile stair field cloud rock picture painting hill
    """
    )
)
"""Nouns whose plural needs no count of at least two."""
_COMPOUNDS = tuple(noun for noun in (*CLASSES_OF, *sorted(ROOM_NOUNS)) if " " in noun)


class CaptionPool:
    """Captions to retrieve from."""

    def __init__(self, texts: Iterable[str], finder: NounFinder, vectors: WordVectors) -> None:
        """Keep the captions all of whose claims can be checked against evidence.

        Args:
            texts: captions as written.
            finder: finds nouns, as :func:`noun_finder` returns it.
            vectors: word vectors, to recognise captions with the same meaning.
        """
        found: dict[str, CheckableCaption] = {}
        for text in tqdm(list(texts), "captions", unit="caption", mininterval=1):
            for variant in variants(text):
                if variant not in found and (caption := read_caption(variant, finder, vectors)) is not None:
                    found[variant] = caption
        self.captions = [found[text] for text in sorted(found)]
        self._uses = [0] * len(self.captions)

    def retrieve(self, evidence: Evidence, wanted: int) -> list[str]:
        """Retrieve at most ``wanted`` captions, the one that names most of the evidence first.

        All nouns of a caption have strong evidence, its colours and counts are confirmed, and no two captions have the
        same meaning. A caption that was already used for other photographs has a lower score.
        """
        ranked = []
        for place, caption in enumerate(self.captions):
            score = _score(caption, evidence)
            if score > 0 and self._uses[place] < MAX_USES:
                ranked.append((_USE_PENALTY * self._uses[place] ** 0.5 - score, place))
        chosen: list[CheckableCaption] = []
        for _, place in sorted(ranked)[:_MAX_RANKED]:
            caption = self.captions[place]
            if len(chosen) < wanted and not any(_mean_the_same(caption, other) for other in chosen):
                chosen.append(caption)
                self._uses[place] += 1
        return [caption.text for caption in chosen]


def noun_finder() -> NounFinder:
    """Load the noun finder of the package with the compound names of places and supported nouns."""
    return NounFinder.load(class_names=_COMPOUNDS)


def _score(caption: CheckableCaption, evidence: Evidence) -> float:
    """Sum what a caption names; 0 if the evidence does not confirm one of its claims."""
    score = 0.0
    rooms = set(evidence.rooms)
    counted: set[str] = set()
    for noun, many in caption.nouns:
        if noun in ROOM_NOUNS:
            if noun not in rooms:
                return 0.0
            score += 0.5 if noun == "room" else 1.5
            continue
        if noun not in evidence.certain:
            return 0.0
        if many and noun not in _UNCOUNTED and not _at_least(evidence, noun, 2):
            return 0.0
        if noun not in counted:
            score += 1 + evidence.nouns[noun] ** 0.5 + (noun in evidence.named_by_people)
        counted.add(noun)
    for claim, noun in caption.claims:
        if not _is_confirmed(claim, noun, evidence):
            return 0.0
        score += 0.3
    return score


def _at_least(evidence: Evidence, noun: str, number: int) -> bool:
    return evidence.counts.get(noun, (0, 0))[0] >= number


def _is_confirmed(claim: str, noun: str, evidence: Evidence) -> bool:
    """Return whether the evidence confirms a colour, count or quantifier of a noun."""
    if claim in COUNT_WORDS:
        number = COUNT_WORDS[claim]
        return number == 1 or evidence.exact_count(noun) == number
    if claim in QUANTIFIERS:
        needed = 2 if claim in ("couple", "pair", "both") else 3
        return _at_least(evidence, noun, needed) and (needed == 3 or evidence.exact_count(noun) == 2)
    if noun in ROOM_NOUNS:
        return claim in evidence.colours.get("wall", ())
    if claim in ("wooden", "wood"):
        return "brown" in evidence.colours.get(noun, ())
    return {"grey": "gray"}.get(claim, claim) in evidence.colours.get(noun, ())


def _mean_the_same(one: CheckableCaption, other: CheckableCaption) -> bool:
    """Return whether two captions share more than 70 % of their nouns, or more than half and similar word vectors."""
    nouns, others = {noun for noun, _ in one.nouns}, {noun for noun, _ in other.nouns}
    shared = len(nouns & others) / len(nouns | others)
    return shared > 0.7 or (shared > 0.5 and float(one.direction @ other.direction) >= SAME_MEANING)
