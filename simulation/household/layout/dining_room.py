"""Furniture of dining rooms."""

from collections.abc import Sequence

from simulation.household.layout import small_objects
from simulation.household.layout.groups import add_dining_group
from simulation.household.layout.small_objects import add_bookshelf, add_clutter
from simulation.household.objects import seating, tables
from simulation.household.scene import Wall
from simulation.household.scene_builder import SceneBuilder


def furnish_dining_room(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a dining group in the middle, and cabinets, a bookshelf and a chair at the walls."""
    rng, room = builder.rng, builder.room
    for _ in range(5):
        x, y = room.width / 2 + rng.uniform(-0.3, 0.3), room.depth / 2 + rng.uniform(-0.3, 0.3)
        if add_dining_group(builder, x, y, chairs=int(rng.integers(3, 7)), laid_probability=0.85):
            break
    for mesh_builder in (tables.cabinet, tables.chest):
        if rng.random() < 0.8:
            cabinet = builder.place_along_walls(mesh_builder(rng), walls)
            add_clutter(builder, cabinet, small_objects.DINING_ROOM_CABINET, 3.5, turn=0.5)
    if rng.random() < 0.35:
        add_bookshelf(builder, walls)
    for _ in range(int(rng.integers(0, 2))):
        builder.place_along_walls(seating.chair(rng), walls)
