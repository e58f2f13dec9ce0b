"""Rules of furnishing, one function for each kind of room."""

from collections.abc import Sequence

import numpy as np

from simulation.household.layout import small_objects
from simulation.household.layout.small_objects import (
    MeshBuilder,
    add_book_stack,
    add_bookshelf,
    add_clutter,
    add_fruit,
    add_object_on_seat,
)
from simulation.household.materials import Material, lightened, patterned, plain, random_colour, wood
from simulation.household.mesh import ObjectMesh
from simulation.household.objects import bathroom, decoration, electronics, furniture, kitchen, tableware
from simulation.household.scene import WALL_YAW, ObjectPose, PlacedObject, Wall
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
    mesh = furniture.dining_table(rng)
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
    desk = builder.place_along_walls(furniture.desk(rng), walls, gap=0.03)
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
    chair = furniture.chair(rng)
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
        chair = furniture.chair(np.random.default_rng(chair_seed))
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
        cabinet = builder.place_along_walls(furniture.nightstand(rng), walls)
        add_clutter(builder, cabinet, small_objects.BATHROOM_CABINET, 6)
    if rng.random() < 0.6:
        mat = bathroom.bath_mat(rng)
        builder.place(mat, ObjectPose(room.width / 2, room.depth / 2, 0.0, rng.uniform(-0.3, 0.3)))


def furnish_bedroom(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a bed at the first wall between nightstands, and a desk, a chest and a chair at the other walls."""
    rng, wall = builder.rng, walls[0]
    mesh = furniture.bed(rng)
    for along in rng.uniform(-0.7, 0.7, 6):
        if bed := builder.place_at_wall(mesh, wall, along, gap=0.02):
            break
    if bed is not None and rng.random() < 0.45:
        add_object_on_seat(builder, bed, 0.8)
    for side in (-1, 1):
        stand = builder.place_at_wall(furniture.nightstand(rng), wall, along + side * (float(mesh.size[0]) / 2 + 0.32))
        add_clutter(builder, stand, small_objects.NIGHTSTAND, 4, turn=0.6)
    if rng.random() < 0.7:
        add_workplace(builder, walls[1:])
    if rng.random() < 0.8:
        chest = builder.place_along_walls(furniture.chest(rng), walls[1:])
        if chest is not None and rng.random() < 0.4:
            builder.place_on_fraction(chest.surfaces[0], electronics.monitor(rng), 0, 0.2)
        add_clutter(builder, chest, small_objects.CABINET, 5, turn=0.5)
    if rng.random() < 0.4:
        builder.place_along_walls(furniture.chair(rng), walls[1:])


def furnish_dining_room(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place a dining group in the middle, and cabinets, a bookshelf and a chair at the walls."""
    rng, room = builder.rng, builder.room
    for _ in range(5):
        x, y = room.width / 2 + rng.uniform(-0.3, 0.3), room.depth / 2 + rng.uniform(-0.3, 0.3)
        if add_dining_group(builder, x, y, chairs=int(rng.integers(3, 7)), laid_probability=0.85):
            break
    for mesh_builder in (furniture.cabinet, furniture.chest):
        if rng.random() < 0.8:
            cabinet = builder.place_along_walls(mesh_builder(rng), walls)
            add_clutter(builder, cabinet, small_objects.DINING_ROOM_CABINET, 3.5, turn=0.5)
    if rng.random() < 0.35:
        add_bookshelf(builder, walls)
    for _ in range(int(rng.integers(0, 2))):
        builder.place_along_walls(furniture.chair(rng), walls)


def furnish_kitchen(builder: SceneBuilder, walls: Sequence[Wall]) -> None:
    """Place fitted units along the first wall, appliances and small objects on them, and a dining group."""
    rng, wall = builder.rng, walls[0]
    counters = _add_fitted_units(builder, wall)
    appliances: list[MeshBuilder] = [kitchen.microwave, kitchen.toaster]
    for counter, appliance in zip([counters[i] for i in rng.permutation(len(counters))], appliances, strict=False):
        if rng.random() < 0.85:
            builder.place_on_fraction(
                counter.surfaces[0], appliance(rng), rng.uniform(-1, 1), rng.uniform(0.4, 1.0), rng.normal(0, 0.06)
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
    refrigerator = kitchen.refrigerator(rng)
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
            if unit := builder.place_at_wall(kitchen.base_unit(rng, front, counter, width), wall, along, gap=0.0):
                counters.append(unit)
            if rng.random() < 0.75:
                builder.place_at_wall(kitchen.wall_unit(rng, front, width), wall, along, z=1.45)
    return counters


def _random_order(rng: np.random.Generator, wall_length: float) -> list[tuple[str, float]]:
    """Sample the row of units beside the refrigerator: ``oven``, ``sink`` or ``unit``, and the width in metres."""
    units: list[tuple[str, float]] = [("oven", 0.6), ("sink", kitchen.SINK_UNIT_WIDTH)]
    if rng.random() < 0.5:
        units.reverse()
    units.insert(1, ("unit", 0.6))
    spare = wall_length - 0.95 - sum(width for _, width in units)
    while spare > 0.6:
        units.insert(int(rng.choice([0, len(units), 1])), ("unit", 0.6))
        spare -= 0.6
    return units


def _random_front(rng: np.random.Generator) -> Material:
    """Sample the material of doors and drawers."""
    if rng.random() < 0.45:
        return wood(rng)
    rgb = random_colour(rng, "white", "white", "gray", "blue", "green", "beige")[1]
    return plain(rng, lightened(rgb, float(rng.uniform(0.25, 0.5))), roughness=0.35)


def _random_counter(rng: np.random.Generator) -> Material:
    """Sample the material of the counter."""
    if rng.random() < 0.3:
        return wood(rng)
    rgb = random_colour(rng, "gray", "black", "beige", "white")[1]
    return patterned(rng, "stone", rgb, random_colour(rng, "white", "black")[1], roughness=0.2)


def _add_oven(builder: SceneBuilder, wall: Wall, along: float) -> None:
    """Place an oven, in half of the kitchens with a pot on its hob, in most with a hood above it."""
    rng = builder.rng
    oven = builder.place_at_wall(kitchen.oven(rng), wall, along, gap=0.0)
    if oven is not None and rng.random() < 0.5:
        right, back = float(rng.choice([-0.15, 0.15])), float(rng.choice([-0.14, 0.13]))
        x, y = builder.room.floor_point(wall, along + right, 0.31 + back)
        pose = ObjectPose(x, y, kitchen.COUNTER_HEIGHT + 0.025, WALL_YAW[wall])
        builder.place(tableware.pot(rng), pose, support=oven.id, placement="on")
    if rng.random() < 0.6:
        builder.place_at_wall(kitchen.hood(rng), wall, along, z=1.6)


def _add_sink(builder: SceneBuilder, wall: Wall, along: float, front: Material, counter: Material) -> None:
    """Place a unit with a hole in its counter, and a sink in the hole."""
    rng = builder.rng
    if builder.place_at_wall(kitchen.sink_unit(rng, front, counter), wall, along, gap=0.0):
        x, y = builder.room.floor_point(wall, along, kitchen.COUNTER_DEPTH / 2)
        pose = ObjectPose(x, y, kitchen.COUNTER_HEIGHT + 0.001, WALL_YAW[wall])
        builder.place(kitchen.kitchen_sink(rng), pose, placement="on")


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
    table_mesh = furniture.coffee_table(rng)
    table = builder.place(table_mesh, ObjectPose(x, y, 0.0115, facing + rng.normal(0, 0.04)))
    add_clutter(builder, table, small_objects.COFFEE_TABLE, 9)
    if rng.random() < 0.7:
        add_bookshelf(builder, [walls[2], walls[3], walls[1]])
    if rng.random() < 0.6:
        chest = builder.place_along_walls(furniture.chest(rng), walls[1:])
        add_clutter(builder, chest, small_objects.CABINET, 5, turn=0.5)
    if rng.random() < 0.5:
        x, y = room.floor_point(walls[2], rng.uniform(-1, 1), 0.9)
        add_dining_group(builder, x, y, chairs=2, laid_probability=0.3)
    for _ in range(int(rng.integers(0, 3))):
        builder.place_along_walls(furniture.chair(rng), walls[1:])


def _add_television(builder: SceneBuilder, wall: Wall, along: float) -> None:
    """Place a sideboard at a wall with a television and small objects on it."""
    rng = builder.rng
    sideboard = builder.place_at_wall(furniture.cabinet(rng), wall, along)
    if sideboard is not None:
        builder.place_on_fraction(sideboard.surfaces[0], electronics.television(rng), 0, 0.3)
        add_clutter(builder, sideboard, small_objects.CABINET, 5, turn=0.5)


def _add_couch(builder: SceneBuilder, walls: Sequence[Wall], along: float) -> float:
    """Place a couch opposite the television or, if it does not fit there, at any wall.

    Returns:
        The distance in metres of the couch, or of the last place that was tried, from the first wall.
    """
    rng, wall = builder.rng, walls[0]
    mesh = furniture.couch(rng)
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
        builder.place_along_walls(furniture.couch(rng), walls)
    sideboard = builder.place_along_walls(furniture.cabinet(rng), walls)
    add_clutter(builder, sideboard, small_objects.CABINET, 5, turn=0.5)
    for _ in range(int(rng.integers(0, 2))):
        builder.place_along_walls(furniture.chair(rng), walls)
