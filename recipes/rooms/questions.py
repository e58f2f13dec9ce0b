"""Facts about a photograph from questions about it and their answers (DAQUAR), and captions from these facts."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recipes.rooms.words import (
    COLOURS,
    NUMERALS,
    all_known,
    join_phrases,
    read_table,
    with_article,
    without_repetitions,
    word_count,
    words_in,
)
from training.data.inflection import plural, singular

_MAX_NAME_WORDS = 4
_RENAMED = read_table("thing_names.txt")
"""An annotator's name for a thing to the word that captions use; empty for things that captions do not mention."""


def name_of(thing: str, known: Collection[str]) -> str:
    """Translate an annotator's name for a thing to the words of captions.

    Args:
        thing: the name as written.
        known: words that captions may use; a misspelt word is not among them.

    Returns:
        The name; empty for things that captions do not mention and for unknown words.
    """
    words = " ".join(thing.lower().replace("_", " ").split())
    words = _RENAMED.get(words, _RENAMED.get(singular(words) if words else "", words))
    fits = words and len(words.split()) <= _MAX_NAME_WORDS and all_known(words, known)
    return words if fits and not words.isdigit() and words not in COLOURS else ""


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


MIN_WORDS, MAX_WORDS = 5, 16
_MAX_CAPTIONS, _MAX_RELATIONS = 4, 3
_LONG_RELATION = 9
"""Number of words from which on the sentence of a relation does not name the room."""
LARGE_THINGS = words_in(
    """
    bed couch table desk dresser cabinet refrigerator stove oven toilet bathtub sink television bookshelf window
    door chair shelves wardrobe fireplace piano counter curtain blinds mirror dishwasher
    """
)
"""Things that captions mention first, in this order."""
_SURFACES = frozenset({"table", "desk", "cabinet", "counter", "nightstand", "shelf", "dresser", "stand", "stool"})


def statements(facts: Facts, rooms: Sequence[str]) -> list[str]:
    """Write captions from facts, the most informative first.

    Args:
        facts: facts about one photograph.
        rooms: names for the place, best first.
    """
    room = with_article(rooms[0]) if rooms else "a room"
    things = [described_thing(noun, facts) for noun in large_things(facts)]
    found = []
    if len(things) >= 2:
        found.append(f"{room} with {join_phrases(things[:3])}")
    related = sorted((_sentence(relation) for relation in facts.relations), key=_interest, reverse=True)
    related = [sentence for sentence in related if sentence]
    found += [
        f"{sentence} in {room}" if word_count(sentence) < _LONG_RELATION else sentence
        for sentence in related[:_MAX_RELATIONS]
    ]
    if len(things) >= 5:
        found.append(f"{room} with {join_phrases(things[3:6])}")
    fitting = [text for text in found if MIN_WORDS <= word_count(text) <= MAX_WORDS]
    return without_repetitions(fitting, overlap=0.7)[:_MAX_CAPTIONS]


def described_thing(noun: str, facts: Facts) -> str:
    """Write a thing with its number, or with its colour: ``two chairs``, ``a red couch``."""
    number = facts.counts.get(noun, 1)
    colour = facts.colours.get(noun)
    # A question about a colour is about one thing, so the colour is left out where there are several.
    return counted(f"{colour} {noun}" if colour and number == 1 else noun, number)


def large_things(facts: Facts) -> list[str]:
    """List the nouns of large things that facts name, in the order of :data:`LARGE_THINGS`."""
    nouns = list(dict.fromkeys((*facts.nouns, *facts.counts, *facts.colours)))
    return sorted((noun for noun in nouns if noun in LARGE_THINGS), key=LARGE_THINGS.index)


def _sentence(relation: Relation) -> str:
    """Write a relation; empty where the sentence would be trivial, such as ``a lamp in a room``."""
    things, preposition, place = relation
    place_noun = without_article(place)
    if any(without_article(thing) in place_noun for thing in things):
        return ""
    if preposition == "under" and len(things) == 1 and without_article(things[0]) in _SURFACES:
        return f"{place} on {things[0]}"
    if preposition == "next to" and place_noun in ROOM_SURFACES:
        return ""
    if preposition == "in" and place_noun == "room":
        return ""
    return f"{join_phrases(things)} {preposition} {place}"


def _interest(sentence: str) -> tuple[int, int]:
    """Rank a sentence: number of large things, number of words."""
    return sum(word in LARGE_THINGS for word in map(singular, sentence.split())), word_count(sentence)
