"""Statements out of questions and answers about a photograph (DAQUAR's noisy English)."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from training.data.tokenizer import tokenize
from training.datagen.rooms.words import (
    COLOURS,
    NUMBERS,
    distinct,
    length,
    listed,
    plural,
    singular,
    with_article,
    words_in,
)

MIN_WORDS, MAX_WORDS = 5, 16

# What people say instead of an annotator's name for a thing; empty for what is not worth saying.
_RENAMED = {
    "bottle of liquid": "bottle",
    "bottle of hand wash liquid": "soap bottle",
    "bottle of soap": "soap bottle",
    "bulb": "light",
    "bunk bed": "bunk bed",
    "carton": "box",
    "comforter": "blanket",
    "cordless phone": "phone",
    "decoration item": "",
    "decorative item": "",
    "decorative plate": "plate",
    "door knob": "",
    "door way": "doorway",
    "drawer knob": "",
    "floor mat": "mat",
    "flower pot": "potted plant",
    "framed certificate": "framed picture",
    "garbage bag": "",
    "garbage bin": "trash can",
    "hot water heater": "",
    "knob": "",
    "light switch": "",
    "machine": "",
    "night stand": "nightstand",
    "object": "",
    "ornamental plant": "plant",
    "photo": "picture",
    "photo frame": "picture",
    "photo stand": "picture",
    "plant pot": "potted plant",
    "racks": "shelves",
    "rack": "shelf",
    "refridgerator": "refrigerator",
    "fridge": "refrigerator",
    "remote control": "remote",
    "shelves": "shelves",
    "sofa": "couch",
    "sofas": "couches",
    "stove burner": "stove",
    "switch": "",
    "tap": "faucet",
    "tea kettle": "kettle",
    "telephone": "phone",
    "thing": "",
    "tissue": "tissue",
    "tissue roll": "roll of paper",
    "tube light": "light",
    "tv": "television",
    "utensil container": "",
    "wall": "",
    "wall decoration": "",
    "wall stand": "",
    "wire": "",
    "scissor": "scissors",
    "toy doll": "doll",
    "washing machine": "washing machine",
}
_LARGE = words_in(
    """
    bed couch table desk dresser cabinet refrigerator stove oven toilet bathtub sink television bookshelf window
    door chair shelves wardrobe fireplace piano counter curtain blinds mirror dishwasher
    """
)
_FIXED = frozenset({"wall", "floor", "ceiling"})
_SURFACES = frozenset({"table", "desk", "cabinet", "counter", "nightstand", "shelf", "dresser", "stand", "stool"})
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


@dataclass(frozen=True)
class Facts:
    """What questions and answers say about one photograph."""

    nouns: tuple[str, ...]
    """Singular, in the order of their first mention in an answer."""
    colours: dict[str, str]
    counts: dict[str, int]
    relations: tuple[tuple[tuple[str, ...], str, str], ...]
    """Things (as captions say them), how they stand, and to what."""


def name_of(thing: str, known: Collection[str]) -> str:
    """An annotator's name for a thing as captions say it; empty for what is not worth saying or not known."""
    words = " ".join(thing.lower().replace("_", " ").split())
    words = _RENAMED.get(words, _RENAMED.get(singular(words) if words else "", words))
    # `known` holds words of captions: a slip of the pen is none of them.
    fits = words and len(words.split()) <= 4 and all(word in known for word in tokenize(words))
    return words if fits and not words.isdigit() and words not in COLOURS else ""


def understand(questions: Sequence[tuple[str, str]], known: Collection[str]) -> Facts:
    """
    Args:
        questions: pairs of a question and its answer.
        known: words that captions may have.
    """
    nouns: dict[str, None] = {}
    colours: dict[str, set[str]] = {}
    counts: dict[str, set[int]] = {}
    relations: list[tuple[tuple[str, ...], str, str]] = []
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
            if (match := _COUNT_AT.match(question)) and 0 < number < len(NUMBERS):
                noun, place = name_of(match["noun"], known), _place(match["place"], known)
                if noun and place:
                    relations.append(((counted(singular(noun), number),), match["relation"], place))
            elif (match := _COUNT.match(question)) and 0 < number < len(NUMBERS):
                if noun := name_of(match["noun"], known):
                    counts.setdefault(singular(noun), set()).add(number)
            continue
        things = list(dict.fromkeys(filter(None, (name_of(part, known) for part in answers))))
        nouns.update(dict.fromkeys(singular(thing) for thing in things))
        for pattern, relation in _RELATED:
            if match := pattern.match(question):
                place = _place(match["place"], known)
                if place and things:
                    nouns.setdefault(singular(place.split(" ", 1)[-1]))
                    relations.append((tuple(with_article(thing) for thing in things[:3]), relation, place))
                break
    return Facts(
        tuple(noun for noun in nouns if noun not in _FIXED),
        {noun: next(iter(found)) for noun, found in colours.items() if len(found) == 1 and noun not in _FIXED},
        {noun: next(iter(found)) for noun, found in counts.items() if len(found) == 1},
        tuple(dict.fromkeys(relations)),
    )


def counted(noun: str, number: int) -> str:
    """``a chair``, ``two chairs``."""
    return with_article(noun) if number == 1 else f"{NUMBERS[number]} {plural(noun)}"


def statements(facts: Facts, rooms: Sequence[str]) -> list[str]:
    """True sentences, what a person would say first at the front.

    Args:
        facts: of one photograph.
        rooms: names for the place, best first.
    """
    room = with_article(rooms[0]) if rooms else "a room"
    things = [_described(noun, facts) for noun in _by_size(facts)]
    found = []
    if len(things) >= 2:
        found.append(f"{room} with {listed(things[:3])}")
    related = sorted((_sentence(relation) for relation in facts.relations), key=_interest, reverse=True)
    related = [sentence for sentence in related if sentence]
    found += [f"{sentence} in {room}" if length(sentence) < 9 else sentence for sentence in related[:3]]
    if len(things) >= 5:
        found.append(f"{room} with {listed(things[3:6])}")
    return distinct([text for text in found if MIN_WORDS <= length(text) <= MAX_WORDS], overlap=0.7)[:4]


def _described(noun: str, facts: Facts) -> str:
    number = facts.counts.get(noun, 1)
    colour = facts.colours.get(noun)
    # A colour was asked of one of them, a number of all.
    return counted(f"{colour} {noun}" if colour and number == 1 else noun, number)


def _by_size(facts: Facts) -> list[str]:
    nouns = list(dict.fromkeys((*facts.nouns, *facts.counts, *facts.colours)))
    order = {noun: rank for rank, noun in enumerate(_LARGE)}
    return sorted((noun for noun in nouns if order.get(noun) is not None), key=lambda noun: order[noun])


def _place(words: str, known: Collection[str]) -> str:
    """Where something is, as captions say it; empty where the question goes on too long to be sure."""
    words = re.sub(r"^(?:the|a) ", "", words.strip())
    if words in _FIXED:
        return f"the {words}"
    if len(words.split()) > 2 or re.search(r"\b(?:of|in|on|room|side|left|right|corner|middle)\b", words):
        return ""
    named = name_of(words, known)
    return with_article(named) if named else ""


def _sentence(relation: tuple[tuple[str, ...], str, str]) -> str:
    things, how, place = relation
    place_noun = place.split(" ", 1)[-1]
    if any(thing.split(" ", 1)[-1] in place_noun for thing in things):
        return ""
    if how == "under" and len(things) == 1 and things[0].split(" ", 1)[-1] in _SURFACES:
        return f"{place} on {things[0]}"
    if how == "next to" and place_noun in _FIXED:
        return ""
    if how == "in" and place_noun in ("room",):
        return ""
    return f"{listed(things)} {how} {place}"


def _interest(sentence: str) -> tuple[int, int]:
    return sum(word in _LARGE for word in map(singular, sentence.split())), length(sentence)
