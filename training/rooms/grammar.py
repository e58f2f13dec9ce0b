"""Sentences over what the teachers see beyond much doubt: for photographs that have no human words."""

import random

from training.rooms.evidence import Evidence
from training.rooms.words import NUMBERS, is_plural, listed, plural, with_article

MIN_SHARE = 0.012
# One word for each thing, commonest first; and what is never worth a sentence of its own.
_THINGS = (
    "bed couch table toilet bathtub refrigerator stove sink television desk chair cabinet bookshelf dresser fireplace "
    "pool table laptop armchair microwave window mirror curtain rug door lamp painting potted_plant vase clock bottle "
    "book bowl cup pillow stairs".replace("pool table", "pool_table")
).split()
_MANY_AS_AREA = {"cabinet": "cabinets", "curtain": "curtains", "stairs": "stairs", "book": "books", "pillow": "pillows"}
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
    if not things:
        return []
    draw = random.Random(seed)
    room = with_article(evidence.rooms[0])
    patterns = [f"{room} with {listed(things[:count])}" for count in (2, 3) if len(things) >= count]
    if len(things) >= 2:
        patterns.append(f"{things[0]} and {things[1]} in {room}")
        patterns.append(f"there is {things[0]} in {room}" if not _several(things[0]) else f"{things[0]} in {room}")
    else:
        patterns.append(f"{room} with {things[0]} in it")
    draw.shuffle(patterns)
    return list(dict.fromkeys(patterns))[:wanted]


def _seen(evidence: Evidence) -> list[str]:
    names = [name.replace("_", " ") for name in _THINGS]
    fitting = [name for name in names if name in evidence.sure and evidence.nouns[name] >= MIN_SHARE]
    order = {name: rank for rank, name in enumerate(names)}
    return sorted(fitting, key=lambda name: -(evidence.nouns[name] ** 0.5) + 0.01 * order[name])[:_MAX_THINGS]


def _phrase(name: str, evidence: Evidence) -> str:
    colours = evidence.colours.get(name, frozenset())
    described = f"{next(iter(colours))} {name}" if len(colours) == 1 else name
    number = evidence.counted(name)
    possible = evidence.counts.get(name, (0, 0))[1]
    if name in _MANY_AS_AREA:
        return f"{described[: len(described) - len(name)]}{_MANY_AS_AREA[name]}"
    if number and 1 < number < 5:
        return f"{NUMBERS[number]} {plural(name)}"
    if possible > 1 and number is None:
        return plural(name) if evidence.counts[name][0] > 1 else with_article(name)
    return with_article(described)


def _several(phrase: str) -> bool:
    return is_plural(phrase) or phrase.split()[0] in NUMBERS
