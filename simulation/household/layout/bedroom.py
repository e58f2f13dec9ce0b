"""Furniture of bedrooms."""

from collections.abc import Sequence

from simulation.household.layout import small_objects
from simulation.household.layout.groups import add_workplace
from simulation.household.layout.small_objects import add_clutter, add_object_on_seat
from simulation.household.objects import electronics, seating, tables
from simulation.household.scene import Wall
from simulation.household.scene_builder import SceneBuilder


def furnish_bedroom(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a bed at the first wall between nightstands, and a desk, a chest and a chair at the other walls."""
    rng, wall = builder.rng, walls[0]
    mesh = seating.bed(rng)
    for along in rng.uniform(-0.7, 0.7, 6):
        if bed := builder.place_at_wall(mesh, wall, along, gap=0.02):
            break
    if bed is not None and rng.random() < 0.45:
        add_object_on_seat(builder, bed, 0.8)
    for side in (-1, 1):
        stand = builder.place_at_wall(tables.nightstand(rng), wall, along + side * (float(mesh.size[0]) / 2 + 0.32))
        add_clutter(builder, stand, small_objects.NIGHTSTAND, 4, turn=0.6)
    if rng.random() < 0.7:
        add_workplace(builder, walls[1:])
    if rng.random() < 0.8:
        chest = builder.place_along_walls(tables.chest(rng), walls[1:])
        if chest is not None and rng.random() < 0.4:
            builder.place_on_fraction(chest.surfaces[0], electronics.monitor(rng), 0, 0.2)
        add_clutter(builder, chest, small_objects.CABINET, 5, turn=0.5)
    if rng.random() < 0.4:
        builder.place_along_walls(seating.chair(rng), walls[1:])
