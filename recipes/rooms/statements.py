"""Captions from the facts of questions and answers."""

from collections.abc import Sequence

from recipes.phrases import join_phrases
from recipes.rooms.phrases import with_article, without_repetitions, word_count
from recipes.rooms.questions import ROOM_SURFACES, Facts, Relation, counted, without_article
from recipes.rooms.word_lists import words_in
from training.data.inflection import singular

MIN_WORDS, MAX_WORDS = 5, 16
_MAX_CAPTIONS, _MAX_RELATIONS = 4, 3
_LONG_RELATION = 9
"""Number of words from which on the sentence of a relation does not name the room."""
_LARGE = words_in(
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
    things = [_described(noun, facts) for noun in _large_things(facts)]
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


def _described(noun: str, facts: Facts) -> str:
    number = facts.counts.get(noun, 1)
    colour = facts.colours.get(noun)
    # A question about a colour is about one thing, so the colour is left out where there are several.
    return counted(f"{colour} {noun}" if colour and number == 1 else noun, number)


def _large_things(facts: Facts) -> list[str]:
    nouns = list(dict.fromkeys((*facts.nouns, *facts.counts, *facts.colours)))
    return sorted((noun for noun in nouns if noun in _LARGE), key=_LARGE.index)


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
    return sum(word in _LARGE for word in map(singular, sentence.split())), word_count(sentence)
