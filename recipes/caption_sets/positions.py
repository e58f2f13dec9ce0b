"""Positions of things in rooms, from people's sentences about them (SUN-SPOT) and from questions (DAQUAR)."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from recipes.rooms.phrases import COLOURS, plain, with_article
from recipes.rooms.questions import ROOM_SURFACES, Facts, without_article
from recipes.rooms.thing_names import name_of
from recipes.rooms.word_lists import words_in
from training.data.inflection import singular


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


_LARGE = frozenset(
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
            return where in _FLAT or (head not in _LARGE and (head, where) not in _ABOVE)
        case "in":
            return where in _CONTAINERS and head not in _LARGE
        case "behind" if head in _BACKGROUND:
            return False
        case "under" if head in _LARGE and where in _ON_WALLS:
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
