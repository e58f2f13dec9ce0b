"""Sentences over what the teachers see beyond much doubt: for photographs that have no human words."""

import random

from training.datagen.rooms.evidence import Evidence
from training.datagen.rooms.words import listed, plural, with_article, words_in

MIN_SHARE = 0.012
# One word for each thing, what is worth most first.
_THINGS = words_in(
    """
    bed couch table toilet bathtub refrigerator stove sink television desk chair cabinet bookshelf dresser fireplace
    pool_table laptop armchair microwave window curtain rug lamp potted_plant vase clock bottle book bowl cup pillow
    stairs
    """
)
_MANY_AS_AREA = {"cabinet": "cabinets", "curtain": "curtains", "stairs": "stairs", "book": "books", "pillow": "pillows"}
_CROWDS = frozenset({"chair", "book", "bottle", "cup", "bowl"})
"""Where two are seen there are often more."""
_EMPTY_PLACES = frozenset({"hallway", "attic", "bathroom", "bedroom", "kitchen", "dining room", "office", "closet"})
_COLOURED = frozenset({"bed", "couch", "chair", "desk", "cabinet", "armchair", "rug", "curtain"})
"""What is of one colour often enough, and neither shines nor lets light through."""
_MAX_THINGS = 4


def sentences(evidence: Evidence, wanted: int, seed: str) -> list[str]:
    """At most ``wanted`` different sentences.

    Args:
        evidence: of one photograph, inside a building.
        wanted: how many.
        seed: what varies the patterns, the same for the same photograph.
    """
    if not evidence.indoors:
        return []
    things = [_phrase(name, evidence) for name in _seen(evidence)]
    if len(things) < 2:
        return _bare(evidence, things)[:wanted]
    draw = random.Random(seed)
    room = with_article(evidence.rooms[0])
    patterns = [f"{room} with {listed(things[:count])}" for count in (2, 3) if len(things) >= count]
    patterns.append(f"{things[0]} and {things[1]} in {room}")
    if len(things) > 2:
        patterns.append(f"{room} with {things[0]} and {things[2]}")
    draw.shuffle(patterns)
    return list(dict.fromkeys(patterns))[:wanted]


def _bare(evidence: Evidence, things: list[str]) -> list[str]:
    """Of a place with little in it: its walls and its floor."""
    surfaces = [
        f"{next(iter(colours))} {words}"
        for noun, words in (("wall", "walls"), ("floor", "floor"))
        if evidence.nouns.get(noun, 0) > 0.1 and len(colours := evidence.colours.get(noun, frozenset())) == 1
    ]
    named = [phrase if phrase.endswith("walls") else with_article(phrase) for phrase in surfaces]
    if evidence.rooms[0] not in _EMPTY_PLACES or not things + named:
        return []
    return [f"{with_article(evidence.rooms[0])} with {listed([*things, *named])}"]


def _seen(evidence: Evidence) -> list[str]:
    names = [name.replace("_", " ") for name in _THINGS]
    fitting = [name for name in names if name in evidence.sure and evidence.nouns[name] >= MIN_SHARE]
    order = {name: rank for rank, name in enumerate(names)}
    return sorted(fitting, key=lambda name: -(evidence.nouns[name] ** 0.5) + 0.01 * order[name])[:_MAX_THINGS]


def _phrase(name: str, evidence: Evidence) -> str:
    colours = evidence.colours.get(name, frozenset()) if name in _COLOURED else frozenset()
    described = f"{next(iter(colours))} {name}" if len(colours) == 1 else name
    surely, possibly = evidence.counts.get(name, (0, 0))
    if name in _MANY_AS_AREA:
        return f"{described[: len(described) - len(name)]}{_MANY_AS_AREA[name]}"
    # Detectors miss some of many: only two can be counted on.
    if surely > 1:
        return f"two {plural(name)}" if surely == possibly == 2 and name not in _CROWDS else plural(name)
    return with_article(name if possibly > 1 else described)
