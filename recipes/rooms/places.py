"""Names of places: the words of captions for a scene's name, and whether the scene is inside a building."""

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from recipes.rooms.words import words_in

# Name of a scene to the words for the place, best first.
ROOMS: dict[str, tuple[str, ...]] = {
    "airport terminal": ("airport",),
    "art gallery": ("art gallery",),
    "attic": ("attic",),
    "bar": ("bar",),
    "bathroom": ("bathroom",),
    "bedchamber": ("bedroom",),
    "bedroom": ("bedroom",),
    "bookstore": ("book store", "store"),
    "childs room": ("bedroom",),
    "classroom": ("classroom",),
    "closet": ("closet",),
    "computer room": ("computer room",),
    "conference room": ("conference room",),
    "corridor": ("hallway",),
    "dinette home": ("dining room",),
    "dining room": ("dining room",),
    "dorm room": ("dorm room", "bedroom"),
    "game room": ("game room",),
    "garage indoor": ("garage",),
    "hallway": ("hallway",),
    "home office": ("home office", "office"),
    "hotel room": ("hotel room", "bedroom"),
    "kitchen": ("kitchen",),
    "kitchenette": ("kitchen",),
    "library indoor": ("library",),
    "living room": ("living room",),
    "lobby": ("lobby",),
    "nursery": ("nursery",),
    "office": ("office",),
    "parlor": ("living room",),
    "poolroom home": ("game room",),
    "restaurant": ("restaurant",),
    "restroom indoor": ("restroom", "bathroom"),
    "shoe shop": ("store",),
    "shop": ("store",),
    "staircase": ("staircase",),
    "supermarket": ("grocery store", "store"),
    "waiting room": ("waiting room",),
    "youth hostel": ("bedroom",),
}
ROOM_NOUNS = frozenset(name for names in ROOMS.values() for name in names) | {"room"}
"""All nouns for places inside a building."""

_INDOOR_WORDS = frozenset(
    words_in(
        """
    attic basement bathroom bedroom bedchamber classroom closet corridor galley hallway kitchen kitchenette
    airport gallery shop supermarket bookstore laundromat library lobby nursery office pantry parlor playroom
    restaurant room salon sauna shower staircase sunroom cafeteria bar childs interior indoor home
    """
    )
)
# Inside, but not a room.
_VEHICLES = frozenset({"airplane", "van", "bus", "subway", "ferryboat", "cockpit", "car", "backseat", "frontseat"})
_OUTDOOR_WORDS = frozenset(
    words_in(
        """
    outdoor exterior street road highway facade skyscraper beach coast mountain valley river creek park pasture
    bridge field hill desert castle house garden
    """
    )
)


def is_indoors_by_name(scene: str) -> bool | None:
    """Return whether a scene is inside a building by its name; None where the name does not decide."""
    words = set(scene.split())
    if words & ({"outdoor", "exterior", "building"} | _VEHICLES):
        return False
    if words & _INDOOR_WORDS:
        return True
    return False if words & _OUTDOOR_WORDS else None


_SCENES = Path(__file__).parent / "nyu_scenes.csv"


@cache
def rooms_by_number() -> Mapping[int, str]:
    """Read the room that each photograph of ``nyu_rooms`` shows, by its number; empty where the kind is unclear.

    The data has no names of rooms: one person named them by eye (``nyu_scenes.csv``).
    """
    with _SCENES.open(encoding="utf-8", newline="") as stream:
        return {
            number: row["room"]
            for row in csv.DictReader(stream)
            for number in range(int(row["first"]), int(row["last"]) + 1)
        }


def number_of(file: str) -> int:
    """Return the number of a photograph of ``nyu_rooms``: 3 for ``image3.jpg``."""
    return int(Path(file).stem.removeprefix("image"))
