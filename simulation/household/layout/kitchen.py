"""Furniture of kitchens."""

from collections.abc import Sequence

import numpy as np

from simulation.household import materials
from simulation.household.layout import small_objects
from simulation.household.layout.groups import add_dining_group
from simulation.household.layout.small_objects import MeshBuilder, add_clutter
from simulation.household.objects import kitchen_appliances, kitchen_units, tableware
from simulation.household.oriented_boxes import ObjectPose
from simulation.household.scene import WALL_YAW, PlacedObject, Wall
from simulation.household.scene_builder import SceneBuilder


def furnish_kitchen(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place fitted units along the first wall, appliances and small objects on them, and a dining group."""
    rng, wall = builder.rng, walls[0]
    counters = _add_fitted_units(builder, wall)
    appliances: list[MeshBuilder] = [kitchen_appliances.microwave, kitchen_appliances.toaster]
    for counter, appliance in zip([counters[i] for i in rng.permutation(len(counters))], appliances, strict=False):
        if rng.random() < 0.85:
            builder.place_on_fraction(
                counter.surfaces[0],
                appliance(rng),
                rng.uniform(-1, 1),
                rng.uniform(0.4, 1.0),
                rng.normal(0, 0.06),
            )
    for counter in counters:
        add_clutter(builder, counter, small_objects.COUNTER, 5)
    for distance in (2.35, 2.2, 2.5, 2.1):
        x, y = builder.room.floor_point(wall, rng.uniform(-0.5, 0.5), distance)
        if add_dining_group(builder, x, y, chairs=int(rng.integers(2, 5)), laid_probability=0.4):
            break


def _add_fitted_units(builder: SceneBuilder, wall: Wall) -> list[PlacedObject]:
    """Place a refrigerator and, beside it, an oven, a sink and units with cupboards above.

    Returns:
        The base units, on whose counter appliances and small objects can stand.
    """
    rng = builder.rng
    front, counter = _random_front(rng), _random_counter(rng)
    length = builder.room.wall_length(wall)
    units = _random_order(rng, length)
    # The refrigerator stands at the left or at the right end of the wall.
    direction = -1 if rng.random() < 0.5 else 1
    refrigerator = kitchen_appliances.refrigerator(rng)
    offset = -length / 2 + 0.05 + float(refrigerator.size[0]) / 2
    builder.place_at_wall(refrigerator, wall, direction * offset, gap=0.03)
    offset += float(refrigerator.size[0]) / 2 + 0.02
    counters: list[PlacedObject] = []
    for name, width in units:
        along = direction * (offset + width / 2)
        offset += width
        if name == "oven":
            _add_oven(builder, wall, along)
        elif name == "sink":
            _add_sink(builder, wall, along, front, counter)
        else:
            if unit := builder.place_at_wall(kitchen_units.base_unit(rng, front, counter, width), wall, along, gap=0.0):
                counters.append(unit)
            if rng.random() < 0.75:
                builder.place_at_wall(kitchen_units.wall_unit(rng, front, width), wall, along, z=1.45)
    return counters


def _random_order(rng: np.random.Generator, wall_length: float) -> list[tuple[str, float]]:
    """Sample the row of units beside the refrigerator: ``oven``, ``sink`` or ``unit``, and the width in metres."""
    units: list[tuple[str, float]] = [("oven", 0.6), ("sink", kitchen_units.SINK_UNIT_WIDTH)]
    if rng.random() < 0.5:
        units.reverse()
    units.insert(1, ("unit", 0.6))
    spare = wall_length - 0.95 - sum(width for _, width in units)
    while spare > 0.6:
        units.insert(int(rng.choice([0, len(units), 1])), ("unit", 0.6))
        spare -= 0.6
    return units


def _random_front(rng: np.random.Generator) -> materials.Material:
    """Sample the material of doors and drawers."""
    if rng.random() < 0.45:
        return materials.wood(rng)
    rgb = materials.random_colour(rng, "white", "white", "gray", "blue", "green", "beige")[1]
    return materials.plain(rng, materials.lightened(rgb, float(rng.uniform(0.25, 0.5))), roughness=0.35)


def _random_counter(rng: np.random.Generator) -> materials.Material:
    """Sample the material of the counter."""
    if rng.random() < 0.3:
        return materials.wood(rng)
    rgb = materials.random_colour(rng, "gray", "black", "beige", "white")[1]
    return materials.patterned(rng, "stone", rgb, materials.random_colour(rng, "white", "black")[1], roughness=0.2)


def _add_oven(builder: SceneBuilder, wall: Wall, along: float) -> None:
    """Place an oven, in half of the kitchens with a pot on its hob, in most with a hood above it."""
    rng = builder.rng
    oven = builder.place_at_wall(kitchen_appliances.oven(rng), wall, along, gap=0.0)
    if oven is not None and rng.random() < 0.5:
        right, back = float(rng.choice([-0.15, 0.15])), float(rng.choice([-0.14, 0.13]))
        x, y = builder.room.floor_point(wall, along + right, 0.31 + back)
        pose = ObjectPose(x, y, kitchen_units.COUNTER_HEIGHT + 0.025, WALL_YAW[wall])
        builder.place(tableware.pot(rng), pose, support=oven.id, placement="on")
    if rng.random() < 0.6:
        builder.place_at_wall(kitchen_appliances.hood(rng), wall, along, z=1.6)


def _add_sink(
    builder: SceneBuilder, wall: Wall, along: float, front: materials.Material, counter: materials.Material
) -> None:
    """Place a unit with a hole in its counter, and a sink in the hole."""
    rng = builder.rng
    if builder.place_at_wall(kitchen_units.sink_unit(rng, front, counter), wall, along, gap=0.0):
        x, y = builder.room.floor_point(wall, along, kitchen_units.COUNTER_DEPTH / 2)
        pose = ObjectPose(x, y, kitchen_units.COUNTER_HEIGHT + 0.001, WALL_YAW[wall])
        builder.place(kitchen_units.kitchen_sink(rng), pose, placement="on")
