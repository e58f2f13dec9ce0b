"""Captions by templates from strong evidence, for photographs with few captions from better sources."""

import random

from recipes.phrases import join_phrases
from recipes.rooms.evidence import Evidence
from recipes.rooms.phrases import with_article
from recipes.rooms.word_lists import words_in
from training.data.inflection import plural

MIN_SHARE = 0.012
"""Smallest fraction of the image that a named thing covers."""
# One word for each thing, the most informative first.
_THINGS = words_in(
    """
    bed couch table toilet bathtub refrigerator stove sink television desk chair cabinet bookshelf dresser fireplace
    pool_table laptop armchair microwave window curtain rug lamp potted_plant vase clock bottle book bowl cup pillow
    """
)
_NAMED_IN_PLURAL = frozenset({"cabinet", "curtain", "book", "pillow"})
"""Things that the segmenter finds without counting them, and of which there usually are several."""
_CROWDS = frozenset({"chair", "book", "bottle", "cup", "bowl"})
"""Things of which there are often more than the detector finds."""
_BARE_PLACES = frozenset({"hallway", "attic", "bathroom", "bedroom", "kitchen", "dining room", "office", "closet"})
"""Places whose walls and floor are named where fewer than two things are certain."""
_COLOURED = frozenset({"bed", "couch", "chair", "desk", "cabinet", "armchair", "rug", "curtain"})
"""Things that often have one colour and are neither reflective nor transparent."""
_MAX_THINGS = 4


def template_captions(evidence: Evidence, wanted: int, seed: str) -> list[str]:
    """Write at most ``wanted`` different captions; none for a place that is not inside a building.

    Args:
        evidence: evidence for one photograph.
        wanted: number of captions.
        seed: seed of the order of the templates, the photograph's id: captions are the same in every run.
    """
    if not evidence.indoors:
        return []
    things = [_phrase(name, evidence) for name in _largest_things(evidence)]
    if len(things) < 2:
        return _bare_room(evidence, things)[:wanted]
    room = with_article(evidence.rooms[0])
    patterns = [f"{room} with {join_phrases(things[:count])}" for count in (2, 3) if len(things) >= count]
    patterns.append(f"{things[0]} and {things[1]} in {room}")
    if len(things) > 2:
        patterns.append(f"{room} with {things[0]} and {things[2]}")
    random.Random(seed).shuffle(patterns)
    return list(dict.fromkeys(patterns))[:wanted]


def _bare_room(evidence: Evidence, things: list[str]) -> list[str]:
    """Name the walls and the floor of a place with few things in it."""
    surfaces = [
        f"{next(iter(colours))} {words}"
        for noun, words in (("wall", "walls"), ("floor", "floor"))
        if evidence.nouns.get(noun, 0) > 0.1 and len(colours := evidence.colours.get(noun, frozenset())) == 1
    ]
    named = [phrase if phrase.endswith("walls") else with_article(phrase) for phrase in surfaces]
    if evidence.rooms[0] not in _BARE_PLACES or not things + named:
        return []
    return [f"{with_article(evidence.rooms[0])} with {join_phrases([*things, *named])}"]


def _largest_things(evidence: Evidence) -> list[str]:
    names = [name.replace("_", " ") for name in _THINGS]
    fitting = [name for name in names if name in evidence.certain and evidence.nouns[name] >= MIN_SHARE]
    order = {name: rank for rank, name in enumerate(names)}
    return sorted(fitting, key=lambda name: -(evidence.nouns[name] ** 0.5) + 0.01 * order[name])[:_MAX_THINGS]


def _phrase(name: str, evidence: Evidence) -> str:
    colours = evidence.colours.get(name, frozenset()) if name in _COLOURED else frozenset()
    described = f"{next(iter(colours))} {name}" if len(colours) == 1 else name
    certain, possible = evidence.counts.get(name, (0, 0))
    if name in _NAMED_IN_PLURAL:
        return plural(described)
    # Detectors miss some of many objects: no count beyond two is reliable.
    if certain > 1:
        return f"two {plural(name)}" if certain == possible == 2 and name not in _CROWDS else plural(name)
    return with_article(name if possible > 1 else described)
