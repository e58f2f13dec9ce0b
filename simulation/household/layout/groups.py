"""Groups of furniture that belong together: a dining table with chairs, a desk with a screen and a chair."""

from collections.abc import Sequence

import numpy as np

from simulation.household.layout import small_objects
from simulation.household.layout.small_objects import add_book_stack, add_clutter, add_fruit
from simulation.household.object_mesh import ObjectMesh
from simulation.household.objects import electronics, seating, tables, tableware
from simulation.household.oriented_boxes import ObjectPose
from simulation.household.scene import PlacedObject, Wall
from simulation.household.scene_builder import SceneBuilder


def add_dining_group(
    builder: SceneBuilder, x: float, y: float, *, chairs: int, laid_probability: float
) -> PlacedObject | None:
    """Place a dining table with chairs of one kind around it.

    Args:
        builder: the room.
        x: centre of the table in metres.
        y: centre of the table in metres.
        chairs: number of chairs that are tried.
        laid_probability: probability that the table is laid.

    Returns:
        The table; None if it does not fit.
    """
    rng = builder.rng
    mesh = tables.dining_table(rng)
    yaw = float(rng.choice([0.0, np.pi / 2])) + rng.normal(0, 0.02)
    table = builder.place(mesh, ObjectPose(x, y, 0.0, yaw))
    if table is None:
        return None
    sides = _add_chairs(builder, table, chairs)
    if rng.random() < laid_probability:
        _lay_table(builder, table, sides or [0.0])
    add_clutter(builder, table, small_objects.DINING_TABLE, 9)
    return table


def add_workplace(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a desk at one of the walls with a screen, keyboard and mouse or a laptop, small objects and a chair."""
    rng = builder.rng
    desk = builder.place_along_walls(tables.desk(rng), walls, gap=0.03)
    if desk is None:
        return
    top = desk.surfaces[0]
    x = float(rng.uniform(-0.25, 0.25))
    back, front = top.surface.half_depth, -top.surface.half_depth
    if rng.random() < 0.6:
        builder.place_on(top, electronics.monitor(rng), x, back - 0.13, rng.normal(0, 0.06))
        if rng.random() < 0.9:
            builder.place_on(top, electronics.keyboard(rng), x, front + 0.16, rng.normal(0, 0.05))
            builder.place_on(top, electronics.mouse(rng), x + 0.3, front + 0.15, rng.normal(0, 0.2))
    else:
        builder.place_on(top, electronics.laptop(rng), x, front + 0.26, rng.normal(0, 0.1))
        if rng.random() < 0.6:
            builder.place_on(top, electronics.mouse(rng), x + 0.26, front + 0.17, rng.normal(0, 0.2))
    add_book_stack(builder, top)
    add_clutter(builder, desk, small_objects.DESK, 8)
    chair = seating.chair(rng)
    distance = float(desk.mesh.size[1]) / 2 + float(chair.size[1]) / 2 + rng.uniform(0.0, 0.25)
    pose, cos, sin = desk.pose, np.cos(desk.pose.yaw), np.sin(desk.pose.yaw)
    builder.place(
        chair,
        ObjectPose(
            pose.x + cos * x + sin * distance,
            pose.y + sin * x - cos * distance,
            0.0,
            pose.yaw + np.pi + rng.normal(0, 0.3),
        ),
    )


def _add_chairs(builder: SceneBuilder, table: PlacedObject, count: int) -> list[float]:
    """Place equal chairs around a table, at its long sides first.

    Returns:
        For each chair the yaw in radians, relative to the table, at which a person on it faces the table.
    """
    rng = builder.rng
    half_width, half_depth = table.mesh.size[:2] / 2
    chair_seed = int(rng.integers(2**31))
    offsets = [-0.3, 0.3] if half_width > 0.68 else [0.0]
    places = [(side, along) for along in offsets for side in (0.0, np.pi)] + [(np.pi / 2, 0.0), (-np.pi / 2, 0.0)]
    seated = []
    for side, along in places[:count]:
        chair = seating.chair(np.random.default_rng(chair_seed))
        reach = half_depth if abs(np.cos(side)) > 0.5 else half_width
        for gap in (rng.uniform(-0.12, 0.25), 0.3):
            distance = reach + float(chair.bounds[1, 1]) * 0.5 + gap + 0.05
            pose = table.pose
            cos, sin = np.cos(pose.yaw + side), np.sin(pose.yaw + side)
            x, y = pose.x + cos * along + sin * distance, pose.y + sin * along - cos * distance
            # The chair's back points away from the table.
            if builder.place(chair, ObjectPose(x, y, 0.0, pose.yaw + side + np.pi + rng.normal(0, 0.12))):
                seated.append(side)
                break
    return seated


def _lay_table(builder: SceneBuilder, table: PlacedObject, sides: Sequence[float]) -> None:
    """Place plate, cutlery and glass at most of the given sides of a table, see ``_add_chairs``."""
    rng, top = builder.rng, table.surfaces[0]
    for side in sides:
        if rng.random() < 0.25:
            continue
        reach = top.surface.half_depth if abs(np.cos(side)) > 0.5 else top.surface.half_width
        cos, sin = np.cos(side), np.sin(side)
        for mesh, right, forward in _random_place_setting(rng):
            x, y = right, -(reach - forward)
            placed = builder.place_on(top, mesh, cos * x - sin * y, sin * x + cos * y, side)
            add_fruit(builder, placed)


def _random_place_setting(rng: np.random.Generator) -> list[tuple[ObjectMesh, float, float]]:
    """Sample the objects of one place: mesh, metres to the right of its middle, metres from the table's edge."""
    objects: list[tuple[ObjectMesh, float, float]] = []
    if rng.random() < 0.8:
        objects.append((tableware.plate(rng) if rng.random() < 0.7 else tableware.bowl(rng), 0.0, 0.17))
    if rng.random() < 0.7:
        objects += [(tableware.fork(rng), -0.19, 0.15), (tableware.knife(rng), 0.18, 0.15)]
    if rng.random() < 0.5:
        objects.append((tableware.spoon(rng), 0.215, 0.15))
    if rng.random() < 0.75:
        objects.append(((tableware.wine_glass if rng.random() < 0.6 else tableware.cup)(rng), 0.17, 0.36))
    return objects
