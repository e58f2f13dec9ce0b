"""Furniture of bathrooms."""

from collections.abc import Sequence

from simulation.household.layout import small_objects
from simulation.household.layout.small_objects import add_clutter
from simulation.household.objects import bathroom, tables
from simulation.household.oriented_boxes import ObjectPose
from simulation.household.scene import Wall
from simulation.household.scene_builder import SceneBuilder


def furnish_bathroom(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place toilet and washbasin at the first wall, and a bathtub, a towel, a cabinet and a mat elsewhere."""
    rng, room, wall = builder.rng, builder.room, walls[0]
    side = float(rng.choice([-1, 1]))
    length = room.wall_length(wall)
    builder.place_at_wall(bathroom.toilet(rng), wall, -side * (length / 2 - 0.45))
    along = side * (length / 2 - rng.uniform(0.6, 0.8))
    basin = bathroom.washbasin(rng)
    placed = builder.place_at_wall(basin, wall, along)
    if placed is not None:
        builder.place(bathroom.washstand(rng, basin), placed.pose)
        builder.place_at_wall(bathroom.mirror(rng), wall, along, z=1.2, gap=0.003)
    if rng.random() < 0.7:
        builder.place_along_walls(bathroom.bathtub(rng), [walls[2], walls[3]], gap=0.02)
    builder.place_along_walls(bathroom.towel(rng), walls, z=float(rng.uniform(0.9, 1.1)), gap=0.006)
    if rng.random() < 0.6:
        cabinet = builder.place_along_walls(tables.nightstand(rng), walls)
        add_clutter(builder, cabinet, small_objects.BATHROOM_CABINET, 6)
    if rng.random() < 0.6:
        mat = bathroom.bath_mat(rng)
        builder.place(mat, ObjectPose(room.width / 2, room.depth / 2, 0.0, rng.uniform(-0.3, 0.3)))
