"""Captions of rooms from what people said of their things: where they are, how many, of which colour."""

import random
from collections.abc import Iterator, Sequence

from recipes.caption_sets.fluency import Fluency
from recipes.caption_sets.positions import Position
from recipes.phrases import join_phrases
from recipes.rooms.phrases import with_article, without_repetitions
from recipes.rooms.questions import Facts, counted, without_article
from recipes.rooms.word_lists import words_in
from training.data.inflection import is_plural, singular
from training.data.tokenizer import tokenize

MIN_WORDS, MAX_WORDS = 6, 18
MAX_CAPTIONS = 4
_MAX_OVERLAP = 0.6
"""Largest fraction of words that two captions of one photograph share."""
_LARGE = words_in(
    """
    bed couch table desk dresser cabinet refrigerator stove oven toilet bathtub sink television bookshelf window
    door chair shelves wardrobe fireplace piano counter curtain blinds mirror dishwasher
    """
)
"""Things that captions mention first, in this order."""
_HOLDS_MANY = frozenset(
    {"table", "desk", "counter", "dresser", "shelf", "nightstand", "stand", "cabinet", "stove", "bed"}
)
_HUNG = frozenset(
    words_in("picture painting clock mirror poster towel curtain jacket calendar flag plant chandelier lamp light")
)
_FINITE = {
    "sitting": ("sits", "sit"),
    "hanging": ("hangs", "hang"),
    "leaning": ("leans", "lean"),
    "standing": ("stands", "stand"),
    "laying": ("lays", "lay"),
    "mounted": ("is mounted", "are mounted"),
}
"""Participle to the verb of one thing and of several."""
_LEANS = frozenset({"ladder", "guitar", "broom", "mattress", "umbrella"})


class RoomWriter:
    """Writes captions of one photograph, in forms that people use. Equal photographs have equal captions."""

    def __init__(self, facts: Facts, positions: Sequence[Position], room: str, fluency: Fluency, seed: str) -> None:
        """
        Args:
            facts: of questions and answers.
            positions: of things; the first ones are preferred.
            room: the kind of room, such as ``bedroom``; empty where it is unknown.
            fluency: tells which captions read like people's.
            seed: seed of the choice among forms, the photograph's id.
        """
        self._facts, self._positions, self._fluency = facts, positions, fluency
        self._room = with_article(room) if room else "a room"
        self._chance = random.Random(seed)

    def captions(self) -> list[str]:
        """Write at most ``MAX_CAPTIONS`` captions, those of two facts first."""
        joined = list(self._joined())
        single = [form for position in self._positions for form in self._forms(position)]
        for forms in (joined, single):
            self._chance.shuffle(forms)
        listed = list(self._lists())
        kept: list[str] = []
        # At most half of the captions join facts, so that short ones are learned as well.
        for forms, most in ((joined, MAX_CAPTIONS // 2), (single, MAX_CAPTIONS - 1), (listed, MAX_CAPTIONS)):
            for form in forms:
                begins_alike = self._begins_with_room(form) and sum(map(self._begins_with_room, kept)) >= 2
                if len(kept) < most and not begins_alike and self._is_good(form):
                    kept = without_repetitions([*kept, form], _MAX_OVERLAP)
        return kept

    def _begins_with_room(self, caption: str) -> bool:
        return caption.startswith(f"{self._room} with")

    def _is_good(self, caption: str) -> bool:
        words = tokenize(caption)
        nouns = [singular(word) for word in words if len(word) > 3]
        return (
            MIN_WORDS <= len(words) <= MAX_WORDS
            and self._fluency.reads_well(words)
            and not any(nouns.count(noun) > 1 for noun in nouns if noun not in ("with", "next", "front", "near"))
        )

    def _forms(self, position: Position) -> Iterator[str]:
        """Write one position in every form that fits it."""
        clause, things = self._clause(position), join_phrases(position.things)
        preposition, place = position.places[0]
        yield f"{clause} in {self._room}"
        yield f"{self._room} with {self._clause(position._replace(verb=''), verb=False)}"
        many = len(position.things) > 1 or is_plural(without_article(position.things[0]))
        yield f"there {'are' if many else 'is'} {self._clause(position, verb=False)} in {self._room}"
        if participle := position.verb or self._usual_verb(position):
            yield self._clause(position._replace(verb=_FINITE[participle][many]))
        if len(position.places) > 1:
            yield clause
        if preposition == "on" and place.startswith(("a ", "an ")):
            it = "them" if is_plural(place) else "it"
            yield f"{place} with {things} on {it} in {self._room}"
            if singular(place.split()[-1]) in _HOLDS_MANY and len(position.things) > 1:
                yield f"{place} topped with {things} in {self._room}"
        if preposition == "next to" and _names(position) <= set(_LARGE):
            yield f"{self._room} with {things} and {place} next to each other"

    def _joined(self) -> Iterator[str]:
        """Write two positions, or a position and a large thing, as one caption."""
        for place, one in enumerate(self._positions):
            for other in self._positions[place + 1 :]:
                if not _names(one) & _names(other):
                    both = f"{self._clause(one, verb=False)} and {self._clause(other, verb=False)}"
                    yield self._chance.choice([f"{both} in {self._room}", f"{self._room} with {both}", both])
                elif one.places[0][0] == other.places[0][0] == "on" and one.places[0][1] == other.places[0][1]:
                    things = join_phrases([*dict.fromkeys((*one.things, *other.things))][:3])
                    yield f"{things} on {self._at('on', one.places[0][1])} in {self._room}"
                elif one.places[0] == ("on", other.things[0]) and other.places[0][0] in ("next to", "near", "by"):
                    preposition, beside = other.places[0]
                    on = "them" if is_plural(other.things[0]) else "it"
                    yield f"{other.things[0]} with {join_phrases(one.things)} on {on} {preposition} {beside}"
        for position in self._positions:
            named = _names(position)
            large = [thing for thing in self._large_things() if singular(thing.split()[-1]) not in named]
            if large:
                yield f"{self._room} with {self._chance.choice(large[:3])} and {self._clause(position, verb=False)}"

    def _lists(self) -> Iterator[str]:
        """Write the large things of the room."""
        things = self._large_things()
        if len(things) >= 2:
            yield f"{self._room} with {join_phrases(things[:3])}"
            yield f"{join_phrases(things[:2])} in {self._room}"

    def _clause(self, position: Position, *, verb: bool = True) -> str:
        """Write things and their places: ``a lamp sitting on a table next to a bed``."""
        participle = (position.verb or self._usual_verb(position)) if verb else ""
        where = " ".join(f"{preposition} {self._at(preposition, place)}" for preposition, place in position.places)
        return " ".join(filter(None, (join_phrases(position.things), participle, where)))

    def _usual_verb(self, position: Position) -> str:
        """Choose a participle that people use for the thing and its place, or none."""
        preposition, place = position.places[0]
        heads = {singular(without_article(thing).split()[-1]) for thing in position.things}
        if preposition == "on" and "person" not in heads:
            usual = "hanging" if place == "the wall" or (heads <= _HUNG and place == "the ceiling") else "sitting"
            return self._chance.choice([usual, ""])
        if preposition == "above" and heads <= _HUNG:
            return self._chance.choice(["hanging", ""])
        return "leaning" if preposition == "against" and heads <= _LEANS else ""

    def _at(self, preposition: str, place: str) -> str:
        return self._fluency.with_usual_article(preposition, place)

    def _large_things(self) -> list[str]:
        facts = self._facts
        nouns = dict.fromkeys((*facts.nouns, *facts.counts, *facts.colours))
        return [self._described(noun) for noun in sorted((each for each in nouns if each in _LARGE), key=_LARGE.index)]

    def _described(self, noun: str) -> str:
        number, colour = self._facts.counts.get(noun, 1), self._facts.colours.get(noun)
        # A question about a colour is about one thing, so the colour is left out where there are several.
        return counted(f"{colour} {noun}" if colour and number == 1 else noun, number)


def _names(position: Position) -> set[str]:
    phrases = [*position.things, *(part for _, place in position.places for part in place.split(" and "))]
    return {singular(without_article(phrase).split()[-1]) for phrase in phrases}
