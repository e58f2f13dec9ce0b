"""Furniture of living rooms."""

from collections.abc import Sequence

import numpy as np

from simulation.household.layout import small_objects
from simulation.household.layout.groups import add_dining_group
from simulation.household.layout.small_objects import add_bookshelf, add_clutter, add_object_on_seat
from simulation.household.objects import decoration, electronics, seating, tables
from simulation.household.oriented_boxes import ObjectPose
from simulation.household.scene import WALL_YAW, Wall
from simulation.household.scene_builder import SceneBuilder


def furnish_living_room(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a television at the first wall, a couch opposite, a coffee table between, and more at the other walls."""
    rng, room, wall = builder.rng, builder.room, walls[0]
    along = float(rng.uniform(-0.5, 0.5))
    _add_television(builder, wall, along)
    couch_distance = _add_couch(builder, walls, along)
    x, y = room.floor_point(wall, along + rng.normal(0, 0.1), couch_distance - 0.95)
    facing = WALL_YAW[wall] + np.pi
    if rng.random() < 0.6:
        builder.place(decoration.rug(rng), ObjectPose(x, y, 0.0, facing))
    # The table's legs stand on the rug, if there is one.
    table_mesh = tables.coffee_table(rng)
    table = builder.place(table_mesh, ObjectPose(x, y, 0.0115, facing + rng.normal(0, 0.04)))
    add_clutter(builder, table, small_objects.COFFEE_TABLE, 9)
    if rng.random() < 0.7:
        add_bookshelf(builder, [walls[2], walls[3], walls[1]])
    if rng.random() < 0.6:
        chest = builder.place_along_walls(tables.chest(rng), walls[1:])
        add_clutter(builder, chest, small_objects.CABINET, 5, turn=0.5)
    if rng.random() < 0.5:
        x, y = room.floor_point(walls[2], rng.uniform(-1, 1), 0.9)
        add_dining_group(builder, x, y, chairs=2, laid_probability=0.3)
    for _ in range(int(rng.integers(0, 3))):
        builder.place_along_walls(seating.chair(rng), walls[1:])


def _add_television(builder: SceneBuilder, wall: Wall, along: float) -> None:
    """Place a sideboard at a wall with a television and small objects on it."""
    rng = builder.rng
    sideboard = builder.place_at_wall(tables.cabinet(rng), wall, along)
    if sideboard is not None:
        builder.place_on_fraction(sideboard.surfaces[0], electronics.television(rng), 0, 0.3)
        add_clutter(builder, sideboard, small_objects.CABINET, 5, turn=0.5)


def _add_couch(builder: SceneBuilder, walls: Sequence[Wall], along: float) -> float:
    """Place a couch opposite the television or, if it does not fit there, at any wall.

    Returns:
        The distance in metres of the couch, or of the last place that was tried, from the first wall.
    """
    rng, wall = builder.rng, walls[0]
    mesh = seating.couch(rng)
    couch, distance = None, 0.0
    for distance in rng.uniform(2.2, 2.9, 6):
        x, y = builder.room.floor_point(wall, along + rng.normal(0, 0.25), distance)
        couch = builder.place(mesh, ObjectPose(x, y, 0.0, WALL_YAW[wall] + np.pi + rng.normal(0, 0.03)))
        if couch:
            break
    else:
        couch = builder.place_along_walls(mesh, walls)
    if couch is not None and rng.random() < 0.4:
        add_object_on_seat(builder, couch, 0.5)
    return distance
