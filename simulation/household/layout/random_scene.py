"""Random furnished rooms."""

from collections.abc import Callable, Sequence

import numpy as np

from simulation.household.layout.bathroom import furnish_bathroom
from simulation.household.layout.bedroom import furnish_bedroom
from simulation.household.layout.dining_room import furnish_dining_room
from simulation.household.layout.kitchen import furnish_kitchen
from simulation.household.layout.living_room import furnish_living_room
from simulation.household.layout.office import furnish_office
from simulation.household.layout.random_room import random_room
from simulation.household.layout.wall_fixtures import add_fixtures, add_wall_decoration
from simulation.household.lighting import random_daylight, random_night_lighting
from simulation.household.objects import person, plants
from simulation.household.oriented_boxes import ObjectPose
from simulation.household.scene import WALLS, Scene, Wall
from simulation.household.scene_builder import SceneBuilder

_FURNISHERS: dict[str, Callable[[SceneBuilder, Sequence[Wall]], None]] = {
    "kitchen": furnish_kitchen,
    "living room": furnish_living_room,
    "bedroom": furnish_bedroom,
    "office": furnish_office,
    "dining room": furnish_dining_room,
    "bathroom": furnish_bathroom,
}

ROOM_KINDS = tuple(_FURNISHERS)


def random_scene(rng: np.random.Generator, kind: str, *, day: bool) -> Scene:
    """Build a random room with everything in it.

    Args:
        rng: source of every random choice.
        kind: one of ``ROOM_KINDS``.
        day: True for daylight, False for a night with lamps on.
    """
    lighting = random_daylight(rng) if day else random_night_lighting(rng)
    walls: list[Wall] = [WALLS[i] for i in rng.permutation(4)]
    builder = SceneBuilder(random_room(rng, kind, walls), rng)
    add_fixtures(builder, lighting)
    _FURNISHERS[kind](builder, walls)
    add_wall_decoration(builder)
    if kind != "bathroom" and rng.random() < 0.4:
        _add_person(builder)
    if kind != "bathroom" and rng.random() < 0.5:
        builder.place_along_walls(plants.floor_plant(rng), WALLS, gap=0.05)
    return Scene(builder.room, tuple(builder.objects), lighting)


def _add_person(builder: SceneBuilder) -> None:
    """Place a person on the free floor, if a random point of it is found."""
    room, rng = builder.room, builder.rng
    mesh = person.standing_person(rng)
    for _ in range(30):
        x, y = rng.uniform(0.5, room.width - 0.5), rng.uniform(0.5, room.depth - 0.5)
        if builder.place(mesh, ObjectPose(x, y, 0.0, rng.uniform(-np.pi, np.pi))):
            return
