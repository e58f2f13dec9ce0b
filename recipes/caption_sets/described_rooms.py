"""Captions for the photographs of ``nyu_rooms`` from people's sentences and answers about their things.

Positions come from sentences (SUN-SPOT) and questions (DAQUAR). Captions say where things are, how many they are and
of which colour.
"""

import random
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from recipes.caption_sets.captions_file import CaptionedImage
from recipes.caption_sets.fluency import Fluency
from recipes.rooms.photographs import NYU, Photograph
from recipes.rooms.places import number_of, rooms_by_number
from recipes.rooms.questions import (
    LARGE_THINGS,
    ROOM_SURFACES,
    Facts,
    described_thing,
    extract_facts,
    large_things,
    name_of,
    without_article,
)
from recipes.rooms.words import COLOURS, join_phrases, plain, with_article, without_repetitions, words_in
from training.data.inflection import is_plural, singular
from training.data.json_files import read_json_lines
from training.data.tokenizer import tokenize
from training.errors import DataError


class Position(NamedTuple):
    """Things and where they are."""

    things: tuple[str, ...]
    """Noun phrases with article or number."""
    verb: str
    """Participle, such as ``leaning``; empty where people give none."""
    places: tuple[tuple[str, str], ...]
    """One or two pairs of a preposition and a noun phrase with article."""


# Positions as people write them, and the prepositions of captions; the first that matches counts. Annotators do not
# agree on left and right.
_PREPOSITIONS = (
    (r"(?:directly |right |immediately |just )?(?:on|at|to)? ?(?:the |its )?(?:very |far |immediate |near )?"
     r"(?:left|right)(?:[ -]hand)?(?: side)? (?:of|from|to)", "next to"),
    (r"(?:directly |right )?(?:on|at) (?:the )?top of|atop|upon", "on"),
    (r"(?:directly |right |just )?in front of", "in front of"),
    (r"(?:directly |right |just )?(?:next|adjacent) to|beside", "next to"),
    (r"(?:very )?(?:close to|near to|near)", "near"),
    (r"in between|between", "between"),
    (r"across from", "across from"),
    (r"(?:leaning |up )?against", "against"),
    (r"(?:directly |right |just )?(?:under|underneath|below|beneath)", "under"),
    (r"(?:directly |right |just )?(?:above|over)", "above"),
    (r"(?:directly |right |just )?behind", "behind"),
    (r"inside of|inside|in|into", "in"),
    (r"on", "on"),
    (r"by", "by"),
)  # fmt: skip
_PREPOSITION = re.compile(
    r"(?:^|(?<= ))(?:and |which is |that is |is |are |it is |sitting |standing |hanging |resting |placed )*(?:"
    + "|".join(f"(?P<p{number}>{words})" for number, (words, _) in enumerate(_PREPOSITIONS))
    + r")(?= )"
)
_NO_POSITION = re.compile(r"\b(?:located|situated|placed|positioned|found|kept|also|set)\b ?")
_WHAT = re.compile(
    r"^(?:(?:this|that|it|there) (?:is|are) )?(?:the|an?|this|these|some)? ?(?P<what>[a-z -]+?)"
    r"(?: (?:that|which))?(?: (?:is|are))?"
    r"(?: (?P<verb>sits?|hangs?|leans?|stands?|rests?|lies|lays|sitting|hanging|leaning|standing|mounted|laying"
    r"|resting))?$"
)
_PARTICIPLES = {
    **dict.fromkeys(("sit", "sits", "sitting", "rest", "rests", "resting"), "sitting"),
    **dict.fromkeys(("hang", "hangs", "hanging"), "hanging"),
    **dict.fromkeys(("lean", "leans", "leaning"), "leaning"),
    **dict.fromkeys(("stand", "stands", "standing"), "standing"),
    **dict.fromkeys(("lies", "lays", "laying"), "laying"),
    "mounted": "mounted",
}
_MODIFIERS = frozenset(
    {"small", "large", "big", "wooden", "round", "square", "tall", "glass", "metal", "leather", "little"}
)
# Words of places that a caption cannot repeat without the context that the sentence had.
_DEICTIC = frozenset(
    words_in(
        """
    left right side corner edge end middle center centre one ones other another it its that which this those these
    room picture image photo closest nearest farthest furthest far front back first second third fourth last top
    bottom upper lower toward towards he she they someone left-most right-most same both them his her you camera
    object item thing surface area is are was has have
    """
    )
)
_MAX_WORDS = 3
_MAX_PLACES = 2


def positions_in_sentence(sentence: str, known: Collection[str]) -> Position | None:
    """Read where a thing is; None for sentences of another form, or with words that captions do not have.

    Args:
        sentence: as written, about one thing: "The toaster is on the counter, to the right of the sink."
        known: words that captions may use.
    """
    text = re.sub(r"[^a-z', -]", " ", plain(re.split(r"[.;] ", sentence.strip())[0]))
    text = " ".join(_NO_POSITION.sub("", text).replace(",", " ").split())
    parts = list(_PREPOSITION.finditer(text))
    if not parts or (what := _WHAT.match(text[: parts[0].start()].strip())) is None:
        return None
    thing = _noun_phrase(what["what"], known)
    places = []
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        phrase = text[part.end() : following.start() if following else None].strip()
        number = next(int(name[1:]) for name, found in part.groupdict().items() if found)
        place = _between(phrase, known) if _PREPOSITIONS[number][1] == "between" else _place(phrase, known)
        if place:
            places.append((_PREPOSITIONS[number][1], place))
    if not thing or not places:
        return None
    return Position(
        (with_article(thing),), _PARTICIPLES.get(what["verb"], ""), tuple(dict.fromkeys(places))[:_MAX_PLACES]
    )


def positions_in_answers(facts: Facts) -> list[Position]:
    """Return the positions that questions and answers tell."""
    return [Position(things, "", ((preposition, place),)) for things, preposition, place in facts.relations]


def sensible(position: Position) -> Position | None:
    """Drop places where a thing of its kind is not found: tables on chairs, books on ceilings; None if none is left.

    Annotators call a toy car a car, and a box on a bed a table.
    """
    heads = {_head(thing) for thing in position.things}
    if len(heads) < len(position.things):
        return None
    places = tuple(
        (preposition, place)
        for preposition, place in position.places
        if all(_fits(head, preposition, place) for head in heads)
    )
    return position._replace(places=places) if places else None


_FURNITURE = frozenset(
    words_in(
        """
    bed couch sofa desk cabinet refrigerator stove oven toilet bathtub bookshelf bookcase dresser piano door window
    wardrobe armoire table chair fireplace island counter closet bench dishwasher shower sink crib room car bicycle
    armchair ottoman curtain blinds stairs
    """
    )
)
_ON_WALLS = frozenset(
    words_in(
        """
    picture painting clock mirror poster whiteboard blackboard board shelf shelves television calendar map light lamp
    flag speaker phone screen sign plate hook jersey diploma certificate fan photograph frame note paper towel
    rack drawing decoration pictures paintings posters heater telephone chalkboard art guitar bag jacket hat
    """
    )
)
_CONTAINERS = frozenset(
    words_in(
        """
    sink cabinet basket box bookshelf shelf shelves closet drawer crib bag vase cup bowl pot holder rack case corner
    bathtub tub wardrobe cart bin can jar refrigerator oven microwave dishwasher cage glass
    """
    )
)
# "On top of the sink" says where a mirror hangs.
_ABOVE = frozenset(
    (thing, place) for thing in ("mirror", "picture", "painting") for place in ("sink", "toilet", "bathtub")
)
_BACKGROUND = frozenset({"window", "door", "doorway", "curtain", "blinds", "wall", "bed", "cabinet", "shelf"})
_FLAT = frozenset({"floor", "ground", "rug", "carpet", "mat"})


def _fits(head: str, preposition: str, place: str) -> bool:
    where = _head(place)
    if head == where or where in ("room", "rooms"):
        return False
    match preposition:
        case "on" if where in ("wall", "walls"):
            return head in _ON_WALLS
        case "on" if where in ("ceiling",):
            return head in ("light", "fan", "lamp", "chandelier", "projector", "camera")
        case "on":
            return where in _FLAT or (head not in _FURNITURE and (head, where) not in _ABOVE)
        case "in":
            return where in _CONTAINERS and head not in _FURNITURE
        case "behind" if head in _BACKGROUND:
            return False
        case "under" if head in _FURNITURE and where in _ON_WALLS:
            return False
        case "next to" | "in front of" | "near" | "by" | "behind" | "across from":
            return where not in ("floor", "ceiling", "ground") and (where != "wall" or preposition in ("near", "by"))
        case "above" | "under":
            return where not in ROOM_SURFACES
    return True


def _head(phrase: str) -> str:
    """Return the last noun of a noun phrase, singular: ``lamp`` of ``two small lamps``."""
    return singular(without_article(phrase).split(" of ")[0].split()[-1])


def _noun_phrase(words: str, known: Collection[str]) -> str:
    """Translate to the words of captions, without article; empty where it does not stand alone."""
    found = re.sub(r"^(?:(?:the|an?|some|his|her|their)\b ?)+", "", words.strip(" -")).split()
    if not found or _DEICTIC & set(found) or len(found) > _MAX_WORDS:
        return ""
    modifiers = []
    while len(found) > 1 and (found[0] in COLOURS or found[0] in _MODIFIERS):
        modifiers.append(found.pop(0))
    named = name_of(" ".join(found), known)
    return " ".join((*modifiers, named)) if named else ""


def _place(words: str, known: Collection[str]) -> str:
    words = re.sub(r" (?:and|with|of|from|that|which|is|are|it)$", "", words)
    if match := re.fullmatch(r"(?:the )?(?:\w+ )?(floor|wall|ceiling|ground)", words):
        return f"the {match[1]}"
    named = _noun_phrase(re.split(r" (?:and|that|which|with) ", words)[0], known)
    return with_article(named) if named else ""


def _between(words: str, known: Collection[str]) -> str:
    """Translate the two things that something is between: "the sink and the stove"."""
    both = [_noun_phrase(part, known) for part in words.split(" and ")]
    return " and ".join(map(with_article, both)) if len(both) == 2 and all(both) else ""


def all_positions(sentences: Iterable[str], facts: Facts, known: Collection[str]) -> list[Position]:
    """Read the positions of one photograph, those of sentences first."""
    told = (positions_in_sentence(sentence, known) for sentence in sentences)
    found = [position for position in told if position is not None] + positions_in_answers(facts)
    return list(dict.fromkeys(kept for position in found if (kept := sensible(position)) is not None))


MIN_WORDS, MAX_WORDS = 6, 18
MAX_CAPTIONS = 4
_MAX_OVERLAP = 0.6
"""Largest fraction of words that two captions of one photograph share."""
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
        if preposition == "next to" and _names(position) <= set(LARGE_THINGS):
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
        return [described_thing(noun, self._facts) for noun in large_things(self._facts)]


def _names(position: Position) -> set[str]:
    phrases = [*position.things, *(part for _, place in position.places for part in place.split(" and "))]
    return {singular(without_article(phrase).split()[-1]) for phrase in phrases}


SENTENCES = "spatial_sentences.jsonl"


def captions_of_rooms(
    data: Path, photographs: Collection[Photograph], fluency: Fluency, known: Collection[str]
) -> list[CaptionedImage]:
    """Write the captions of rooms.

    Args:
        data: folder of the data sets.
        photographs: the rooms, with their questions.
        fluency: tells which captions read like people's.
        known: words that captions may use.

    Raises:
        DataError: the file of sentences is missing or malformed.
    """
    said = read_spatial_sentences(data / NYU / SENTENCES)
    found = []
    for photograph in photographs:
        facts = extract_facts(photograph.questions, known)
        positions = all_positions(said.get(photograph.file, ()), facts, known)
        room = rooms_by_number().get(number_of(photograph.file), "")
        captions = RoomWriter(facts, positions, room, fluency, photograph.file).captions()
        found.append(CaptionedImage(photograph.file, captions, indoor=True))
    return found


def read_spatial_sentences(path: Path) -> dict[str, list[str]]:
    """Read people's sentences about where things are, by the file name of the photograph.

    Raises:
        DataError: the file is missing or malformed.
    """
    found: dict[str, list[str]] = {}
    for number, entry in enumerate(read_json_lines(path), 1):
        try:
            found[entry["image"]] = [str(sentence["text"]) for sentence in entry["sentences"]]
        except (KeyError, TypeError):
            raise DataError(f"{path}, entry {number}: expected image and sentences, each with a text") from None
    return found
