"""Furniture of home offices."""

from collections.abc import Sequence

from simulation.household.layout import small_objects
from simulation.household.layout.groups import add_workplace
from simulation.household.layout.small_objects import add_bookshelf, add_clutter
from simulation.household.objects import seating, tables
from simulation.household.scene import Wall
from simulation.household.scene_builder import SceneBuilder


def furnish_office(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place one or two desks, bookshelves, a couch, a sideboard and a chair at the walls."""
    rng = builder.rng
    add_workplace(builder, walls)
    if rng.random() < 0.6:
        add_workplace(builder, walls)
    add_bookshelf(builder, walls)
    if rng.random() < 0.5:
        add_bookshelf(builder, walls)
    if rng.random() < 0.5:
        builder.place_along_walls(seating.couch(rng), walls)
    sideboard = builder.place_along_walls(tables.cabinet(rng), walls)
    add_clutter(builder, sideboard, small_objects.CABINET, 5, turn=0.5)
    for _ in range(int(rng.integers(0, 2))):
        builder.place_along_walls(seating.chair(rng), walls)
