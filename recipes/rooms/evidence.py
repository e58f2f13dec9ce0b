"""Evidence for captions of a photograph: nouns with counts and colours, from teacher networks and from people's words.

A class that one teacher finds is accepted in the rooms where such things are usual (a bed in a bedroom). Elsewhere both
teachers must find it, or the score must be high.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from recipes.image_content import FoundObject, ImageContent
from recipes.rooms.places import ROOMS, is_indoors_by_name
from recipes.rooms.words import read_table
from smart_caption_ros.detection.boxes import box_areas, box_iou

CLASSES_OF: dict[str, tuple[str, ...]] = {
    noun: tuple(name.replace("_", " ") for name in re.split(r"[ ,]+", classes.strip()) if name)
    for noun, classes in read_table("supported_nouns.txt").items()
}
"""Noun, in the singular, to the names of its classes; names of the detector's begin with @."""


POSSIBLE = 0.25
"""Minimum detector score of an object that makes a count uncertain."""
LIKELY = 0.4
"""Minimum detector score of an object that supports a noun."""
CERTAIN = 0.5
"""Minimum detector score of an object that is strong evidence."""
CERTAIN_ELSEWHERE = 0.65
"""Minimum detector score of strong evidence outside, or in a room where such things are unusual."""
LARGE_SHARE, SMALL_SHARE = 0.02, 0.005
"""Minimum fraction of the image at which the segmenter supports a noun, in general and for ``SMALL_CLASSES``."""
SMALL_CLASSES = frozenset({"bottle", "book", "clock", "flower", "lamp", "light", "plate", "towel", "vase", "sconce"})
SAME_OBJECT_IOU = 0.6
"""Minimum IoU of two boxes that count as one object."""
_MIN_INDOOR_SHARE, _MAX_OUTDOOR_SHARE = 0.35, 0.06
"""A place whose name does not decide is inside if indoor areas (walls, floor) cover more than the first fraction of the
image and outdoor areas less than the second."""
_OFTEN_MISTAKEN = frozenset({"door", "painting", "picture", "mirror", "armchair", "window", "curtain"})
_INDOOR_AREAS = ("ceiling", "wall", "floor")
_OUTDOOR_AREAS = ("sky", "tree", "grass", "road", "building", "mountain", "sea", "sidewalk", "earth", "field", "water")
_BEDROOMS = frozenset({"bedroom", "hotel room", "dorm room", "nursery"})
_KITCHENS, _BATHROOMS = frozenset({"kitchen"}), frozenset({"bathroom", "restroom"})
_LIVING = frozenset({"living room", "lobby", "waiting room", "game room"})
_OFFICES = frozenset({"office", "home office", "computer room", "classroom", "conference room", "library"})
# The rooms that a thing belongs to; nouns that are not listed belong everywhere.
_USUAL_ROOMS: dict[str, frozenset[str]] = {
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
# Room, and how many of which things identify a room without a name.
_TYPICAL: tuple[tuple[str, int, frozenset[str]], ...] = (
    ("bathroom", 1, frozenset({"toilet", "bathtub"})),
    ("kitchen", 2, frozenset({"stove", "oven", "refrigerator", "dishwasher", "microwave", "sink", "kitchen island"})),
    ("bedroom", 1, frozenset({"bed"})),
    ("living room", 2, frozenset({"couch", "fireplace", "coffee table", "television"})),
)


@dataclass(frozen=True)
class Evidence:
    """Evidence for the captions of one photograph. Nouns are singular, keys of ``CLASSES_OF``."""

    indoors: bool
    rooms: tuple[str, ...]
    """Names for the place, best first, ``room`` last; empty for a place that is not inside a building."""
    nouns: dict[str, float]
    """Supported nouns to the fraction of the image that shows them."""
    certain: frozenset[str]
    """Supported nouns with strong evidence."""
    counts: dict[str, tuple[int, int]]
    """Nouns of the detector's classes to the number of certain objects and the number of possible ones."""
    colours: dict[str, frozenset[str]] = field(default_factory=dict)
    """Supported nouns to the names of the colours found on them."""
    named_by_people: frozenset[str] = frozenset()
    """Nouns that people used in texts about the photograph."""

    def exact_count(self, noun: str) -> int | None:
        """Return how many there are; None where some are uncertain."""
        certain, possible = self.counts.get(noun, (0, 0))
        return certain if certain and certain == possible else None


def collect_evidence(scene: str, content: ImageContent, named: Iterable[str] = ()) -> Evidence:
    """Combine the name of the place, the teachers' contents and people's words.

    Args:
        scene: name of the place; may be empty.
        content: found by the teacher networks.
        named: nouns (singular) that people used in texts about this photograph.
    """
    shares = {area.name: area.share for area in content.areas}
    by_people = frozenset(named)
    indoors = _is_indoors(scene, shares)
    objects = _without_duplicates(content.objects)
    objects_of = {
        noun: [detected for detected in objects if detected.name in _detector_classes(noun)] for noun in CLASSES_OF
    }
    agreed = {
        noun
        for noun in CLASSES_OF
        if _best_score(objects_of[noun]) >= LIKELY and _share(shares, noun) >= _minimum_share(noun)
    }
    rooms = _rooms(scene, by_people | agreed, indoors)
    nouns: dict[str, float] = {}
    certain: set[str] = set(by_people)
    colours: dict[str, set[str]] = {}
    for noun, found in objects_of.items():
        share, score, minimum = _share(shares, noun), _best_score(found), _minimum_share(noun)
        likely = [detected for detected in found if detected.score >= LIKELY]
        usual = noun not in _USUAL_ROOMS or bool(_USUAL_ROOMS[noun] & set(rooms))
        if share >= minimum and (usual or score >= POSSIBLE or (not _detector_classes(noun) and share >= 3 * minimum)):
            nouns[noun] = share
            factor = (2 if usual and indoors else 4) * (2 if noun in _OFTEN_MISTAKEN else 1)
            if score >= LIKELY or share >= factor * minimum:
                certain.add(noun)
        if score >= (LIKELY if usual else CERTAIN):
            nouns[noun] = max(nouns.get(noun, 0), sum(_area(detected) for detected in likely))
            if score >= (CERTAIN if usual and indoors else CERTAIN_ELSEWHERE):
                certain.add(noun)
        areas = [area.colour for area in content.areas if area.name in CLASSES_OF[noun] and area.share >= minimum]
        colours[noun] = {*areas, *(detected.colour for detected in likely)} - {""}
    for noun in by_people:
        nouns[noun] = max(nouns.get(noun, 0), LARGE_SHARE)
    return Evidence(
        indoors,
        rooms,
        nouns,
        frozenset(certain),
        {
            noun: (
                sum(detected.score >= CERTAIN for detected in found),
                sum(detected.score >= POSSIBLE for detected in found),
            )
            for noun, found in objects_of.items()
            if _detector_classes(noun)
        },
        {noun: frozenset(names) for noun, names in colours.items() if noun in nouns},
        by_people,
    )


def _is_indoors(scene: str, shares: Mapping[str, float]) -> bool:
    if not scene:
        return True
    if (by_name := is_indoors_by_name(scene)) is not None:
        return by_name
    inside = sum(shares.get(name, 0) for name in _INDOOR_AREAS)
    outside = sum(shares.get(name, 0) for name in _OUTDOOR_AREAS)
    return inside > _MIN_INDOOR_SHARE and outside < _MAX_OUTDOOR_SHARE


def _rooms(scene: str, things: Set[str], indoors: bool) -> tuple[str, ...]:
    if not indoors:
        return ()
    if scene:
        return (*ROOMS.get(scene, ()), "room")
    fitting = [name for name, needed, typical in _TYPICAL if len(things & typical) >= needed]
    return (fitting[0], "room") if len(fitting) == 1 else ("room",)


@cache
def _detector_classes(noun: str) -> frozenset[str]:
    """Return the classes of the detector that show a noun."""
    return frozenset(name[1:] for name in CLASSES_OF[noun] if name.startswith("@"))


def _share(shares: Mapping[str, float], noun: str) -> float:
    return sum(shares.get(name, 0) for name in CLASSES_OF[noun])


def _minimum_share(noun: str) -> float:
    return SMALL_SHARE if SMALL_CLASSES & set(CLASSES_OF[noun]) else LARGE_SHARE


def _without_duplicates(objects: Sequence[FoundObject]) -> list[FoundObject]:
    """Drop objects whose box is that of an object of another class with a higher score."""
    ranked = sorted(objects, key=lambda found: -found.score)
    boxes = np.array([detected.box for detected in ranked])
    same_box = box_iou(boxes, boxes) >= SAME_OBJECT_IOU
    kept: list[int] = []
    for place, detected in enumerate(ranked):
        if all(detected.name == ranked[other].name or not same_box[place, other] for other in kept):
            kept.append(place)
    return [ranked[place] for place in kept]


def _best_score(objects: Sequence[FoundObject]) -> float:
    return max((detected.score for detected in objects), default=0.0)


def _area(found: FoundObject) -> float:
    return float(box_areas(np.array(found.box)))
