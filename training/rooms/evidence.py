"""What may be said of a photograph: the teachers' answers and human words as nouns with counts and colours."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from training.rooms.teachers import Seen
from training.rooms.words import ROOM_NOUNS, ROOMS, SUPPORT, indoors_by_name

SURE, LIKELY, POSSIBLE = 0.5, 0.4, 0.25
"""Scores of the detector: enough for the grammar, enough to support a noun, enough to spoil a count."""
SMALL_THINGS = frozenset({"bottle", "book", "clock", "flower", "lamp", "light", "plate", "towel", "vase", "sconce"})
LARGE_AREA, SMALL_AREA = 0.02, 0.005
PERSON_AREA = 0.02
_INDOOR_AREAS = ("ceiling", "wall", "floor")
_OUTDOOR_AREAS = ("sky", "tree", "grass", "road", "building", "mountain", "sea", "sidewalk", "earth", "field", "water")
# What makes a room recognisable where nobody has named it: at least so many of these.
_TYPICAL: tuple[tuple[str, int, frozenset[str]], ...] = (
    ("bathroom", 1, frozenset({"toilet", "bathtub", "shower"})),
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
    people: bool
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
    nouns: dict[str, float] = {}
    sure: set[str] = set()
    counts: dict[str, tuple[int, int]] = {}
    colours: dict[str, set[str]] = {}
    for noun, classes in SUPPORT.items():
        found: list[str] = []
        areas = {name for name in classes if not name.startswith("@")}
        of_detector = {name[1:] for name in classes if name.startswith("@")}
        share = sum(shares.get(name, 0) for name in areas)
        enough = SMALL_AREA if areas & SMALL_THINGS else LARGE_AREA
        if of_detector:
            objects = [each for each in seen.objects if each.name in of_detector]
            likely = [each for each in objects if each.score >= LIKELY]
            counts[noun] = (len(likely), sum(each.score >= POSSIBLE for each in objects))
            found += [each.colour for each in likely]
            boxes = sum((e.box[2] - e.box[0]) * (e.box[3] - e.box[1]) for e in likely)
            if likely:
                nouns[noun] = max(boxes, SMALL_AREA)
                if max(each.score for each in likely) >= SURE:
                    sure.add(noun)
        if share >= enough:
            nouns[noun] = max(nouns.get(noun, 0), share)
            found += [area.colour for area in seen.areas if area.name in areas and area.share >= enough]
            if share >= 2 * enough:
                sure.add(noun)
        if found:
            colours[noun] = set(found) - {""}
    for noun in named:
        nouns[noun] = max(nouns.get(noun, 0), LARGE_AREA)
        sure.add(noun)
    people = "person" in named or shares.get("person", 0) >= PERSON_AREA
    people = people or any(each.name == "person" and each.score >= LIKELY for each in seen.objects)
    rooms = _rooms(scene, sure, indoors)
    return Evidence(
        indoors,
        rooms,
        people,
        nouns,
        frozenset(sure),
        counts,
        {noun: frozenset(names) for noun, names in colours.items()},
        named,
    )


def _rooms(scene: str, sure: set[str], indoors: bool) -> tuple[str, ...]:
    if not indoors:
        return ()
    if scene:
        return (*ROOMS.get(scene, ()), "room")
    fitting = [name for name, needed, typical in _TYPICAL if len(sure & typical) >= needed]
    return (fitting[0], "room") if len(fitting) == 1 else ("room",)


def is_room(noun: str) -> bool:
    return noun in ROOM_NOUNS
