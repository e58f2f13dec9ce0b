"""What may be said of a photograph: the teachers' answers and human words as nouns with counts and colours."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from smart_caption_ros.detection.boxes import box_iou
from training.datagen.rooms.teachers import Seen, SeenObject
from training.datagen.rooms.words import ROOMS, SUPPORT, indoors_by_name

SURER, SURE, LIKELY, POSSIBLE = 0.65, 0.5, 0.4, 0.25
"""Scores of the detector: for a thing in a strange place, for the grammar, to support a noun, to spoil a count."""
SMALL_THINGS = frozenset({"bottle", "book", "clock", "flower", "lamp", "light", "plate", "towel", "vase", "sconce"})
LARGE_AREA, SMALL_AREA = 0.02, 0.005
SAME_OBJECT = 0.6
"""Intersection over union from which on two boxes are one object."""
_OFTEN_MISTAKEN = frozenset({"door", "painting", "picture", "mirror", "armchair", "window", "curtain"})
_INDOOR_AREAS = ("ceiling", "wall", "floor")
_OUTDOOR_AREAS = ("sky", "tree", "grass", "road", "building", "mountain", "sea", "sidewalk", "earth", "field", "water")
_BEDROOMS = frozenset({"bedroom", "hotel room", "dorm room", "nursery"})
_KITCHENS, _BATHROOMS = frozenset({"kitchen"}), frozenset({"bathroom", "restroom"})
_LIVING = frozenset({"living room", "lobby", "waiting room", "game room"})
_OFFICES = frozenset({"office", "home office", "computer room", "classroom", "conference room", "library"})
# Where the teachers may be believed when they see such a thing; elsewhere they must agree, or be very sure.
_HOMES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("bed", "bedspread", "blanket", "pillow", "dresser", "wardrobe"), _BEDROOMS),
    **dict.fromkeys(("toilet", "bathtub", "bath", "tub", "shower", "towel"), _BATHROOMS),
    **dict.fromkeys(("stove", "oven", "range", "refrigerator", "fridge", "freezer", "microwave"), _KITCHENS),
    **dict.fromkeys(("dishwasher", "island", "hood"), _KITCHENS),
    **dict.fromkeys(("sink", "counter", "countertop"), _KITCHENS | _BATHROOMS),
    **dict.fromkeys(("cabinet", "cupboard", "drawer"), _KITCHENS | _BATHROOMS | _BEDROOMS | {"dining room"}),
    **dict.fromkeys(("couch", "sofa", "coffee table", "fireplace"), _LIVING),
    **dict.fromkeys(("television", "tv", "screen"), frozenset()),
    **dict.fromkeys(("computer", "monitor"), _OFFICES),
    **dict.fromkeys(("desk",), _OFFICES | _BEDROOMS),
    **dict.fromkeys(("bookshelf", "bookcase", "shelf"), _OFFICES | {"living room"}),
    **dict.fromkeys(("mirror",), _BATHROOMS | _BEDROOMS),
    **dict.fromkeys(("chair", "table", "seat"), _LIVING | _OFFICES | {"dining room", "restaurant"}),
    **dict.fromkeys(("bench", "armchair"), frozenset()),
}
# What makes a room recognisable where nobody has named it: at least so many of these.
_TYPICAL: tuple[tuple[str, int, frozenset[str]], ...] = (
    ("bathroom", 1, frozenset({"toilet", "bathtub"})),
    ("kitchen", 2, frozenset({"stove", "oven", "refrigerator", "dishwasher", "microwave", "sink", "kitchen island"})),
    ("bedroom", 1, frozenset({"bed"})),
    ("living room", 2, frozenset({"couch", "fireplace", "coffee table", "television"})),
)


@dataclass(frozen=True)
class Evidence:
    """Of one photograph."""

    indoors: bool
    rooms: tuple[str, ...]
    """Names for the place, best first; ``room`` last where it is inside a building."""
    nouns: dict[str, float]
    """Nouns that are supported; the share of the photograph that shows them (at least a little)."""
    sure: frozenset[str]
    """Those of them that are beyond much doubt."""
    counts: dict[str, tuple[int, int]]
    """Of what the detector knows: how many are sure, and how many are possible."""
    colours: dict[str, frozenset[str]] = field(default_factory=dict)
    human: frozenset[str] = frozenset()
    """Nouns that a person has named."""

    def counted(self, noun: str) -> int | None:
        """How many there are; None where that is doubtful."""
        surely, possibly = self.counts.get(noun, (0, 0))
        return surely if surely and surely == possibly else None


def weigh(scene: str, seen: Seen, human: Iterable[str] = ()) -> Evidence:
    """
    Args:
        scene: name of the place; may be empty.
        seen: what the teachers saw.
        human: nouns (singular) that people named in their words about this photograph.
    """
    shares = {area.name: area.share for area in seen.areas}
    named = frozenset(human)
    by_name = indoors_by_name(scene) if scene else None
    outside = sum(shares.get(name, 0) for name in _OUTDOOR_AREAS)
    inside = sum(shares.get(name, 0) for name in _INDOOR_AREAS)
    indoors = by_name if by_name is not None else not scene or (inside > 0.35 and outside < 0.06)
    objects_seen = _one_name_each(seen.objects)
    boxes = {noun: [each for each in objects_seen if each.name in _detected(noun)] for noun in SUPPORT}
    agreed = {noun for noun in SUPPORT if _best(boxes[noun]) >= LIKELY and _share(shares, noun) >= _enough(noun)}
    rooms = _rooms(scene, named | agreed, indoors)
    nouns: dict[str, float] = {}
    sure: set[str] = set(named)
    colours: dict[str, set[str]] = {}
    for noun, objects in boxes.items():
        share, best, enough = _share(shares, noun), _best(objects), _enough(noun)
        likely = [each for each in objects if each.score >= LIKELY]
        at_home = noun not in _HOMES or bool(_HOMES[noun] & set(rooms))
        if share >= enough and (at_home or best >= POSSIBLE or (not _detected(noun) and share >= 3 * enough)):
            nouns[noun] = share
            if best >= LIKELY or (share >= (2 if at_home and indoors else 4) * _doubt(noun) * enough):
                sure.add(noun)
        if best >= (LIKELY if at_home else SURE):
            nouns[noun] = max(nouns.get(noun, 0), sum(_area(each) for each in likely))
            if best >= (SURE if at_home and indoors else SURER):
                sure.add(noun)
        areas = [area.colour for area in seen.areas if area.name in SUPPORT[noun] and area.share >= enough]
        colours[noun] = {*areas, *(each.colour for each in likely)} - {""}
    for noun in named:
        nouns[noun] = max(nouns.get(noun, 0), LARGE_AREA)
    return Evidence(
        indoors,
        rooms,
        nouns,
        frozenset(sure),
        {
            noun: (sum(each.score >= SURE for each in objects), sum(each.score >= POSSIBLE for each in objects))
            for noun, objects in boxes.items()
            if _detected(noun)
        },
        {noun: frozenset(names) for noun, names in colours.items() if noun in nouns},
        named,
    )


def _rooms(scene: str, sure: Set[str], indoors: bool) -> tuple[str, ...]:
    if not indoors:
        return ()
    if scene:
        return (*ROOMS.get(scene, ()), "room")
    fitting = [name for name, needed, typical in _TYPICAL if len(sure & typical) >= needed]
    return (fitting[0], "room") if len(fitting) == 1 else ("room",)


@cache
def _detected(noun: str) -> frozenset[str]:
    """Classes of the detector that show a noun."""
    return frozenset(name[1:] for name in SUPPORT[noun] if name.startswith("@"))


def _share(shares: Mapping[str, float], noun: str) -> float:
    return sum(shares.get(name, 0) for name in SUPPORT[noun])


def _enough(noun: str) -> float:
    return SMALL_AREA if SMALL_THINGS & set(SUPPORT[noun]) else LARGE_AREA


def _doubt(noun: str) -> float:
    return 2 if noun in _OFTEN_MISTAKEN else 1


def _one_name_each(objects: Sequence[SeenObject]) -> list[SeenObject]:
    """Without those that are, by their box, another and surer object of another name."""
    kept: list[SeenObject] = []
    for each in sorted(objects, key=lambda found: -found.score):
        if all(each.name == other.name or _overlap(each, other) < SAME_OBJECT for other in kept):
            kept.append(each)
    return kept


def _overlap(one: SeenObject, other: SeenObject) -> float:
    """Intersection over union."""
    return float(box_iou(np.array(one.box), np.array(other.box))[0, 0])


def _best(objects: Sequence[SeenObject]) -> float:
    return max((each.score for each in objects), default=0.0)


def _area(found: SeenObject) -> float:
    left, top, right, bottom = found.box
    return (right - left) * (bottom - top)
