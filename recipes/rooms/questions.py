"""Facts about a photograph from questions about it and their answers (DAQUAR)."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recipes.phrases import NUMERALS
from recipes.rooms.phrases import COLOURS, with_article
from recipes.rooms.thing_names import name_of
from training.data.inflection import plural, singular

ROOM_SURFACES = frozenset({"wall", "floor", "ceiling"})
# Patterns of positions in questions, and the prepositions that captions use for them.
_RELATIONS = (
    (r"on top of", "on"),
    (r"in front of", "in front of"),
    (r"(?:on|to|at) (?:the )?(?:left|right)(?: hand)?(?: side)? of", "next to"),
    (r"(?:left|right)(?: side)? (?:of|to)", "next to"),
    (r"(?:next|close) to", "next to"),
    (r"beside", "next to"),
    (r"near", "near"),
    (r"behind", "behind"),
    (r"above", "above"),
    (r"(?:below|under|beneath|underneath)", "under"),
    (r"inside", "in"),
    (r"on", "on"),
)
_WHAT = (
    r"^(?:what|which)(?: (?:are|is))?(?: the)?(?: (?:objects?|things?|items?))?(?: (?:are|is))?"
    r"(?: (?:found|placed|kept|present|seen|hung|hanged|stuck|that is|that are|fixed|attached|arranged))? "
)
_RELATED = tuple((re.compile(rf"{_WHAT}{way} (?:the )?(?P<place>.+)$"), relation) for way, relation in _RELATIONS)
_COLOUR = re.compile(
    r"^what (?:is|are) (?:the )?colou?rs? of (?:the )?(?P<noun>.+)$|^what colou?r (?:is|are) (?:the )?(?P<other>.+)$"
)
_COUNT = re.compile(
    r"^how many (?P<noun>[a-z ]+?) are(?: there)?"
    r"(?: (?:in|on) (?:this|the) (?:image|picture|room|photo))?(?: found| seen| present)?$"
)
_COUNT_AT = re.compile(
    r"^how many (?P<noun>[a-z]+(?: [a-z]+)?) are (?:there )?(?:found |placed |kept |hung |stuck )?"
    r"(?P<relation>around|on|near|in front of|behind|above|under) the (?P<place>[a-z]+(?: [a-z]+)?)$"
)
_COMPLEX_PLACE = re.compile(r"\b(?:of|in|on|room|side|left|right|corner|middle)\b")


class Relation(NamedTuple):
    """Things and their position relative to a place."""

    things: tuple[str, ...]
    """Noun phrases with article or number."""
    preposition: str
    place: str
    """Noun phrase with article."""


@dataclass(frozen=True)
class Facts:
    """Facts about one photograph from questions and answers."""

    nouns: tuple[str, ...]
    """Singular, in the order in which answers first mention them."""
    colours: dict[str, str]
    """Singular noun to colour."""
    counts: dict[str, int]
    """Singular noun to number."""
    relations: tuple[Relation, ...]


def extract_facts(questions: Sequence[tuple[str, str]], known: Collection[str]) -> Facts:
    """Extract the facts of questions that match a pattern with one meaning; contradicting answers cancel out.

    Args:
        questions: pairs of a question and its answer.
        known: words that captions may use.
    """
    nouns: dict[str, None] = {}
    colours: dict[str, set[str]] = {}
    counts: dict[str, set[int]] = {}
    relations: list[Relation] = []
    for asked, answer in questions:
        question = " ".join(re.sub(r"[^a-z0-9' ]", " ", asked.lower()).split())
        answers = [part.strip() for part in answer.split(",") if part.strip()]
        if match := _COLOUR.match(question):
            noun = name_of(match["noun"] or match["other"], known)
            if noun and len(answers) == 1 and answers[0].lower() in COLOURS:
                colours.setdefault(singular(noun), set()).add(answers[0].lower())
            continue
        if answer.strip().isdigit():
            number = int(answer)
            if (match := _COUNT_AT.match(question)) and 0 < number < len(NUMERALS):
                noun, place = name_of(match["noun"], known), _place(match["place"], known)
                if noun and place:
                    relations.append(Relation((counted(singular(noun), number),), match["relation"], place))
            elif (match := _COUNT.match(question)) and 0 < number < len(NUMERALS):
                if noun := name_of(match["noun"], known):
                    counts.setdefault(singular(noun), set()).add(number)
            continue
        things = list(dict.fromkeys(filter(None, (name_of(part, known) for part in answers))))
        nouns.update(dict.fromkeys(singular(thing) for thing in things))
        for pattern, preposition in _RELATED:
            if match := pattern.match(question):
                place = _place(match["place"], known)
                if place and things:
                    nouns.setdefault(singular(without_article(place)))
                    relations.append(Relation(tuple(with_article(thing) for thing in things[:3]), preposition, place))
                break
    return Facts(
        tuple(noun for noun in nouns if noun not in ROOM_SURFACES),
        {noun: next(iter(found)) for noun, found in colours.items() if len(found) == 1 and noun not in ROOM_SURFACES},
        {noun: next(iter(found)) for noun, found in counts.items() if len(found) == 1},
        tuple(dict.fromkeys(relations)),
    )


def counted(noun: str, number: int) -> str:
    """Write a number of things: ``a chair``, ``two chairs``."""
    return with_article(noun) if number == 1 else f"{NUMERALS[number]} {plural(noun)}"


def without_article(phrase: str) -> str:
    """Drop the first word of a noun phrase."""
    return phrase.split(" ", 1)[-1]


def _place(words: str, known: Collection[str]) -> str:
    """Translate a place to the words of captions; empty where it is described by more than a name."""
    words = re.sub(r"^(?:the|a) ", "", words.strip())
    if words in ROOM_SURFACES:
        return f"the {words}"
    if len(words.split()) > 2 or _COMPLEX_PLACE.search(words):
        return ""
    named = name_of(words, known)
    return with_article(named) if named else ""
