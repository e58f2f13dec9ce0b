"""The rules of a home: which furniture a room has, what stands on it, and where."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from training.datagen.household import materials as m
from training.datagen.household.lighting import day_light, night_light
from training.datagen.household.models import (
    bathroom,
    decoration,
    electronics,
    fixtures,
    food,
    kitchen,
    person,
    seating,
    tables,
    tableware,
)
from training.datagen.household.scene import WALLS, YAW, Furnishing, Item, Opening, Room, Scene, Wall
from training.datagen.household.shape import Shape, Surface

Builder = Callable[[np.random.Generator], Shape]

ROOMS = ("kitchen", "living room", "bedroom", "office", "dining room", "bathroom")

_SIZES = {
    "kitchen": (3.9, 5.0),
    "living room": (4.6, 5.8),
    "bedroom": (3.9, 4.8),
    "office": (3.6, 4.6),
    "dining room": (4.0, 5.0),
    "bathroom": (2.7, 3.4),
}

# What lies about, with weights.
_MEAL: Mapping[Builder, float] = {
    tableware.bottle: 2,
    tableware.cup: 3,
    tableware.bowl: 2,
    tableware.wine_glass: 2,
    food.banana: 1.5,
    food.apple: 1.5,
    food.orange: 1.5,
    food.cake: 2.0,
    tableware.knife: 0.6,
    tableware.spoon: 0.6,
    tableware.fork: 0.6,
    decoration.potted_plant: 0.8,
    decoration.vase: 0.4,
}
_COUNTER: Mapping[Builder, float] = {
    tableware.bottle: 2.5,
    tableware.cup: 2,
    tableware.bowl: 2,
    tableware.knife: 1,
    tableware.spoon: 0.6,
    food.banana: 1.2,
    food.apple: 1,
    food.orange: 1,
    decoration.potted_plant: 0.6,
    tableware.plate: 0.8,
    tableware.wine_glass: 0.7,
    food.cake: 0.5,
    tableware.pot: 0.7,
    kitchen.toaster: 0.7,
}
_DESK: Mapping[Builder, float] = {
    tableware.cup: 2.5,
    decoration.lying_book: 2.5,
    electronics.cell_phone: 2,
    tableware.bottle: 1.2,
    decoration.potted_plant: 1,
    decoration.table_clock: 1,
    food.apple: 0.5,
    food.banana: 0.5,
    food.orange: 0.3,
    decoration.box_of_paper: 1,
    decoration.lit_table_lamp: 0.7,
}
_LEISURE: Mapping[Builder, float] = {
    decoration.lying_book: 2.5,
    tableware.cup: 2,
    tableware.wine_glass: 1.2,
    tableware.bottle: 1,
    electronics.cell_phone: 1.5,
    electronics.laptop: 1.2,
    tableware.bowl: 1.2,
    decoration.potted_plant: 1,
    food.apple: 0.5,
    food.orange: 0.5,
    decoration.vase: 0.6,
    food.cake: 0.3,
}
_DISPLAY: Mapping[Builder, float] = {
    decoration.potted_plant: 2,
    decoration.table_clock: 1.5,
    decoration.lying_book: 2,
    decoration.vase: 1.5,
    decoration.table_lamp: 1,
    tableware.bowl: 1,
    tableware.bottle: 0.5,
}
_BEDSIDE: Mapping[Builder, float] = {
    decoration.lit_table_lamp: 3,
    decoration.table_clock: 2,
    decoration.lying_book: 2,
    electronics.cell_phone: 2,
    tableware.cup: 1.5,
}
_BATH: Mapping[Builder, float] = {tableware.bottle: 3, tableware.cup: 2, decoration.potted_plant: 1}


def furnish(rng: np.random.Generator, kind: str, *, day: bool) -> Scene:
    """A room of a kind with everything in it.

    Args:
        rng: decides everything that is not given.
        kind: one of ``ROOMS``.
        day: daylight, or lamps and dark windows.
    """
    lighting = day_light(rng) if day else night_light(rng)
    emission = lighting.lamp_strength if lighting.lamps_on else 0.0
    walls: list[Wall] = [WALLS[i] for i in rng.permutation(4)]
    scene = Furnishing(_shell(rng, kind, walls), rng)
    _fixtures(scene, emission, lighting.lamp_tint)
    _FURNISHERS[kind](scene, walls)
    _hang(scene, kind)
    if kind != "bathroom" and rng.random() < 0.4:
        _stand_somewhere(scene, person.standing_person(rng))
    if kind != "bathroom" and rng.random() < 0.5:
        scene.along_wall(decoration.floor_plant(rng), WALLS, gap=0.05)
    return Scene(scene.room, tuple(scene.items), lighting)


def _shell(rng: np.random.Generator, kind: str, walls: Sequence[Wall]) -> Room:
    """Walls, floor and openings. ``walls[0]`` stays whole; the door is in ``walls[1]``; the others have windows."""
    low, high = _SIZES[kind]
    width, depth = rng.uniform(low, high, 2)
    wall_colour, rgb = m.coloured(rng, "white", "white", "white", "beige", "beige", "yellow", "blue", "green", "gray")
    if wall_colour not in ("white", "beige"):
        rgb = _paled(rgb, float(rng.uniform(0.5, 0.75)))
    wall = m.Material("plaster", rgb, roughness=0.9, seed=int(rng.integers(10_000)))
    tiled = None
    floor, floor_kind = _floor(rng, kind)
    if kind in ("kitchen", "bathroom"):
        tile = m.jitter(rng, m.COLOURS[str(rng.choice(["white", "white", "beige", "gray", "blue"]))])
        tiled = m.patterned(
            rng, "tiles", tile, (0.72, 0.71, 0.69), roughness=0.15, scale=float(rng.choice([0.1, 0.15, 0.2]))
        )
    lengths = {"north": width, "south": width, "west": depth, "east": depth}
    openings = [Opening(walls[1], float(rng.uniform(-1, 1) * (lengths[walls[1]] / 2 - 0.75)), 0.86, 0.0, 2.02)]
    for index, wall_name in enumerate(walls[2:]):
        if index == 0 or rng.random() < 0.35:
            wide = min(float(rng.uniform(1.0, 2.0)), lengths[wall_name] - 1.3) if kind != "bathroom" else 0.75
            sill = float(rng.uniform(0.85, 1.0)) if kind != "bathroom" else 1.25
            along = float(rng.uniform(-0.5, 0.5) * (lengths[wall_name] / 2 - wide / 2 - 0.5))
            openings.append(Opening(wall_name, along, wide, sill, float(rng.uniform(2.05, 2.25))))
    return Room(
        kind,
        float(width),
        float(depth),
        float(rng.uniform(2.45, 2.7)),
        wall,
        wall_colour,
        floor,
        floor_kind,
        tiled,
        tuple(openings),
    )


def _paled(rgb: m.RGB, share: float) -> m.RGB:
    """A colour with a share of off-white in it."""
    r, g, b = (c * (1 - share) + 0.91 * share for c in rgb)
    return r, g, b


def _floor(rng: np.random.Generator, kind: str) -> tuple[m.Material, str]:
    draw = rng.random()
    if kind == "bathroom" or (kind == "kitchen" and draw < 0.5):
        rgb = m.jitter(rng, m.COLOURS[str(rng.choice(["white", "gray", "beige", "brown"]))])
        grout = (rgb[0] * 0.7, rgb[1] * 0.7, rgb[2] * 0.7)
        return m.patterned(
            rng, "tiles", rgb, grout, roughness=0.25, scale=float(rng.choice([0.2, 0.3, 0.4]))
        ), "tiled floor"
    if kind in ("bedroom", "living room") and draw < 0.25:
        return m.fabric(rng, m.coloured(rng, "gray", "beige", "brown", "blue")[1], scale=3), "carpet"
    rgb = m.jitter(rng, m.WOODS[str(rng.choice(list(m.WOODS)))])
    dark = (rgb[0] * 0.7, rgb[1] * 0.66, rgb[2] * 0.62)
    return m.patterned(rng, "planks", rgb, dark, roughness=float(rng.uniform(0.3, 0.5))), "wooden floor"


def _fixtures(scene: Furnishing, emission: float, tint: m.RGB) -> None:
    """Windows with sills, pots and curtains, the door, and the ceiling lamps."""
    rng, room = scene.rng, scene.room
    curtain_colour, rgb = m.coloured(rng, "white", "beige", "gray", "red", "blue", "green")
    cloth, curtains = m.fabric(rng, rgb), rng.random() < 0.6 and room.kind not in ("bathroom", "kitchen")
    for opening in room.openings:
        x, y = room.to_wall(opening.wall, opening.along, 0.0)
        yaw = YAW[opening.wall]
        if opening.low == 0:
            scene.place(fixtures.door(rng, opening.width, opening.high), x, y, 0.0, yaw, pose="wall", anywhere=True)
            scene.reserve(opening.wall, opening.along, opening.width + 0.2, 0.85, 0.0, 2.1)
            continue
        wide = opening.width
        window = scene.place(
            fixtures.window(rng, wide, opening.high - opening.low), x, y, opening.low, yaw, pose="wall", anywhere=True
        )
        for side in (-1, 1) if curtains else ():
            span = float(rng.uniform(0.25, 0.4))
            cx, cy = room.to_wall(opening.wall, opening.along + side * (wide / 2 + 0.09 + span / 2), 0.09)
            drop = float(opening.high + 0.12 - 0.04)
            scene.place(fixtures.curtain(rng, span, drop, cloth, curtain_colour), cx, cy, 0.04, yaw, pose="wall")
        scene.reserve(opening.wall, opening.along, wide + 0.1, 0.3, opening.low - 0.03, opening.high)
        if window is not None:
            for _ in range(int(rng.choice([0, 1, 2, 3], p=[0.25, 0.35, 0.25, 0.15]))):
                scene.scatter(window, window.shape.surfaces[0], decoration.sill_plant(rng), turn=0.0)
    spots = [(0.5, 0.5)] if room.width < 4.6 else [(0.3, 0.5), (0.7, 0.5)]
    for fx, fy in spots:
        scene.place(
            fixtures.ceiling_lamp(rng, emission, tint),
            room.width * fx,
            room.depth * fy,
            room.height,
            pose="wall",
            anywhere=True,
        )


def _clutter(
    scene: Furnishing, carrier: Item | None, things: Mapping[Builder, float], count: float, *, turn: float = np.pi
) -> None:
    """About ``count`` things on each top of a piece of furniture, upright things turned by up to ``turn``."""
    if carrier is None:
        return
    builders, weights = list(things), np.array(list(things.values()))
    for surface in carrier.shape.surfaces:
        if surface.kind in ("shelf", "plate"):
            continue
        for _ in range(scene.rng.poisson(count)):
            shape = builders[int(scene.rng.choice(len(builders), p=weights / weights.sum()))](scene.rng)
            facing = 0.4 if shape.name in ("clock", "laptop") else turn
            item = scene.scatter(carrier, surface, shape, turn=facing)
            if item is not None and shape.name == "plate":
                _on_plate(scene, item)


def _on_plate(scene: Furnishing, dish: Item) -> None:
    if scene.rng.random() < 0.5:
        fruit = (food.apple, food.orange)[int(scene.rng.integers(2))]
        scene.on(dish, dish.shape.surfaces[0], fruit(scene.rng), 0, 0)


def _lay_table(scene: Furnishing, table: Item, sides: Sequence[float]) -> None:
    """A place setting for each side, given by the yaw at which one looks at the table from there."""
    rng, top = scene.rng, table.shape.surfaces[0]
    for side in sides:
        if rng.random() < 0.25:
            continue
        reach = top.half_depth if abs(np.cos(side)) > 0.5 else top.half_width

        def spot(right: float, forward: float, side: float = side, reach: float = reach) -> tuple[float, float]:
            """Metres to the right of a seat's middle and from the table's edge, as the surface's (x, y)."""
            cos, sin = np.cos(side), np.sin(side)
            x, y = right, -(reach - forward)
            return cos * x - sin * y, sin * x + cos * y

        settings: list[tuple[Shape, float, float]] = []
        if rng.random() < 0.8:
            settings.append((tableware.plate(rng) if rng.random() < 0.7 else tableware.bowl(rng), 0.0, 0.17))
        if rng.random() < 0.7:
            settings += [(tableware.fork(rng), -0.19, 0.15), (tableware.knife(rng), 0.18, 0.15)]
        if rng.random() < 0.5:
            settings.append((tableware.spoon(rng), 0.215, 0.15))
        if rng.random() < 0.75:
            settings.append(((tableware.wine_glass if rng.random() < 0.6 else tableware.cup)(rng), 0.17, 0.36))
        for shape, right, forward in settings:
            x, y = spot(right, forward)
            item = _at(scene, table, top, shape, x, y, side)
            if item is not None and shape.name == "plate":
                _on_plate(scene, item)


def _at(
    scene: Furnishing, carrier: Item, surface: Surface, shape: Shape, x: float, y: float, turn: float
) -> Item | None:
    """Put a shape's middle on a surface at metres from the surface's middle, if it does not hang over."""
    middle = shape.bounds.mean(axis=0)
    if max(abs(x) - surface.half_width, abs(y) - surface.half_depth) > -float(min(shape.size[:2])) / 2:
        return None
    cos, sin = np.cos(turn), np.sin(turn)
    local = [surface.x + x - cos * middle[0] + sin * middle[1], surface.y + y - sin * middle[0] - cos * middle[1]]
    wx, wy, wz = carrier.to_world(np.array([[*local, surface.z + 0.0005 - float(shape.bounds[0, 2])]]))[0]
    return scene.place(shape, wx, wy, wz, carrier.yaw + turn, support=carrier.id, pose="on")


def _dining_group(scene: Furnishing, x: float, y: float, *, chairs: int, laid: float) -> Item | None:
    """A table with chairs of one kind around it."""
    rng = scene.rng
    table = scene.place(tables.dining_table(rng), x, y, 0.0, float(rng.choice([0.0, np.pi / 2])) + rng.normal(0, 0.02))
    if table is None:
        return None
    half_width, half_depth = table.shape.size[:2] / 2
    chair_seed = int(rng.integers(2**31))
    # Yaws at which a sitter looks at the table: first the long sides.
    offsets = [-0.3, 0.3] if half_width > 0.68 else [0.0]
    places = [(side, along) for along in offsets for side in (0.0, np.pi)] + [(np.pi / 2, 0.0), (-np.pi / 2, 0.0)]
    seated = []
    for side, along in places[:chairs]:
        shape = seating.chair(np.random.default_rng(chair_seed))
        reach = half_depth if abs(np.cos(side)) > 0.5 else half_width
        for out in (rng.uniform(-0.12, 0.25), 0.3):
            # The chair's back is away from the table, so it is turned by half a turn.
            away = reach + float(shape.bounds[1, 1]) * 0.5 + out + 0.05
            cos, sin = np.cos(table.yaw + side), np.sin(table.yaw + side)
            cx, cy = table.x + cos * along + sin * away, table.y + sin * along - cos * away
            if scene.place(shape, cx, cy, 0.0, table.yaw + side + np.pi + rng.normal(0, 0.12)):
                seated.append(side)
                break
    if rng.random() < laid:
        _lay_table(scene, table, seated or [0.0])
    _clutter(scene, table, _MEAL, 9)
    return table


def _work_place(scene: Furnishing, walls: Sequence[Wall]) -> Item | None:
    """A desk at a wall: screen, keyboard and mouse, or a laptop, a chair before it, and what lies about."""
    rng = scene.rng
    desk = scene.along_wall(tables.desk(rng), walls, gap=0.03)
    if desk is None:
        return None
    top = desk.shape.surfaces[0]
    middle = float(rng.uniform(-0.25, 0.25))
    back, front = top.half_depth, -top.half_depth
    if rng.random() < 0.6:
        _at(scene, desk, top, electronics.monitor(rng), middle, back - 0.13, rng.normal(0, 0.06))
        if rng.random() < 0.9:
            _at(scene, desk, top, electronics.keyboard(rng), middle, front + 0.16, rng.normal(0, 0.05))
            _at(scene, desk, top, electronics.mouse(rng), middle + 0.3, front + 0.15, rng.normal(0, 0.2))
    else:
        _at(scene, desk, top, electronics.laptop(rng), middle, front + 0.26, rng.normal(0, 0.1))
        if rng.random() < 0.6:
            _at(scene, desk, top, electronics.mouse(rng), middle + 0.26, front + 0.17, rng.normal(0, 0.2))
    _book_stack(scene, desk, top)
    _clutter(scene, desk, _DESK, 8)
    chair = seating.chair(rng)
    cos, sin = np.cos(desk.yaw), np.sin(desk.yaw)
    away = float(desk.shape.size[1]) / 2 + float(chair.size[1]) / 2 + rng.uniform(0.0, 0.25)
    scene.place(
        chair,
        desk.x + cos * middle + sin * away,
        desk.y + sin * middle - cos * away,
        0.0,
        desk.yaw + np.pi + rng.normal(0, 0.3),
    )
    return desk


def _book_stack(scene: Furnishing, carrier: Item, surface: Surface) -> None:
    """Up to four closed books on each other."""
    rng = scene.rng
    if rng.random() < 0.5:
        return
    under: Item | None = None
    u, v = rng.uniform(-1, 1), rng.uniform(0.2, 1)
    for _ in range(int(rng.integers(2, 5))):
        shape = decoration.closed_lying_book(rng)
        if under is None:
            under = scene.on(carrier, surface, shape, u, v, rng.uniform(-0.4, 0.4))
        else:
            middle, turn = under.centre, rng.normal(0, 0.15)
            top = under.z + float(under.shape.bounds[1, 2]) + 0.0005
            under = scene.place(shape, middle[0], middle[1], top, under.yaw + turn, support=carrier.id, pose="on")
        if under is None:
            return


def _shelves(scene: Furnishing, walls: Sequence[Wall]) -> None:
    """A bookshelf with rows of books and a few other things."""
    rng = scene.rng
    shelf = scene.along_wall(tables.bookshelf(rng), walls)
    if shelf is None:
        return
    for surface in shelf.shape.surfaces:
        draw = rng.random()
        if surface.kind == "top" or draw < 0.3:
            for _ in range(int(rng.integers(1, 3))):
                builder = (
                    decoration.sill_plant,
                    decoration.table_clock,
                    decoration.vase,
                    tableware.bowl,
                    decoration.closed_lying_book,
                )[int(rng.integers(5))]
                scene.scatter(shelf, surface, builder(rng), turn=0.4)
            continue
        x = -surface.half_width + 0.005
        limit = surface.half_width * rng.uniform(-0.1, 1.0)
        while True:
            shape = decoration.book(rng)
            x += float(shape.size[0]) / 2 + 0.0012
            if x > limit or _at(scene, shelf, surface, shape, x, rng.uniform(-0.04, 0.0), 0.0) is None:
                break
            x += float(shape.size[0]) / 2


def _hang(scene: Furnishing, kind: str) -> None:
    """A clock and pictures on the walls."""
    rng = scene.rng
    if rng.random() < 0.6:
        scene.along_wall(decoration.wall_clock(rng), WALLS, z=float(rng.uniform(1.55, 1.8)), gap=0.004)
    for _ in range(int(rng.integers(1, 4)) if kind != "bathroom" else 0):
        scene.along_wall(decoration.picture(rng), WALLS, z=float(rng.uniform(1.25, 1.5)), gap=0.004)


def _stand_somewhere(scene: Furnishing, shape: Shape) -> None:
    room, rng = scene.room, scene.rng
    for _ in range(30):
        x, y = rng.uniform(0.5, room.width - 0.5), rng.uniform(0.5, room.depth - 0.5)
        if scene.place(shape, x, y, 0.0, rng.uniform(-np.pi, np.pi)):
            return


def _kitchen(scene: Furnishing, walls: Sequence[Wall]) -> None:
    rng, room, wall = scene.rng, scene.room, walls[0]
    skin_kind = rng.random()
    skin = (
        m.wood(rng)
        if skin_kind < 0.45
        else m.plain(
            rng,
            _paled(
                m.coloured(rng, "white", "white", "gray", "blue", "green", "beige")[1], float(rng.uniform(0.25, 0.5))
            ),
            roughness=0.35,
        )
    )
    stone = (
        m.wood(rng)
        if rng.random() < 0.3
        else m.patterned(
            rng,
            "stone",
            m.coloured(rng, "gray", "black", "beige", "white")[1],
            m.coloured(rng, "white", "black")[1],
            roughness=0.2,
        )
    )
    length = room.wall_length(wall)
    units: list[tuple[str, float]] = [("oven", 0.6), ("sink", 0.8)]
    if rng.random() < 0.5:
        units.reverse()
    units.insert(1, ("unit", 0.6))
    spare = length - 0.95 - sum(width for _, width in units)
    while spare > 0.6:
        units.insert(int(rng.choice([0, len(units), 1])), ("unit", 0.6))
        spare -= 0.6
    mirror = -1 if rng.random() < 0.5 else 1
    fridge = kitchen.refrigerator(rng)
    at = -length / 2 + 0.05 + float(fridge.size[0]) / 2
    scene.at_wall(fridge, wall, mirror * at, gap=0.03)
    at += float(fridge.size[0]) / 2 + 0.02
    tops: list[Item] = []
    for name, width in units:
        along = mirror * (at + width / 2)
        at += width
        if name == "oven":
            stove = scene.at_wall(kitchen.oven(rng), wall, along, gap=0.0)
            if stove is not None and rng.random() < 0.5:
                x, y = room.to_wall(
                    wall, along + float(rng.choice([-0.15, 0.15])), 0.31 + float(rng.choice([-0.14, 0.13]))
                )
                scene.place(
                    tableware.pot(rng), x, y, kitchen.COUNTER_HEIGHT + 0.025, YAW[wall], support=stove.id, pose="on"
                )
            if rng.random() < 0.6:
                scene.at_wall(kitchen.hood(rng), wall, along, z=1.6)
        elif name == "sink":
            if scene.at_wall(kitchen.sink_base(rng, skin, stone), wall, along, gap=0.0):
                x, y = room.to_wall(wall, along, kitchen.COUNTER_DEPTH / 2)
                scene.place(kitchen.kitchen_sink(rng), x, y, kitchen.COUNTER_HEIGHT + 0.001, YAW[wall], pose="on")
        else:
            if unit := scene.at_wall(kitchen.base_unit(rng, skin, stone, width), wall, along, gap=0.0):
                tops.append(unit)
            if rng.random() < 0.75:
                scene.at_wall(kitchen.wall_unit(rng, skin, width), wall, along, z=1.45)
    machines: list[Builder] = [kitchen.microwave, kitchen.toaster]
    for unit, machine in zip([tops[i] for i in rng.permutation(len(tops))], machines, strict=False):
        if rng.random() < 0.85:
            scene.on(
                unit,
                unit.shape.surfaces[0],
                machine(rng),
                rng.uniform(-1, 1),
                rng.uniform(0.4, 1.0),
                rng.normal(0, 0.06),
            )
    for unit in tops:
        _clutter(scene, unit, _COUNTER, 5)
    for away in (2.35, 2.2, 2.5, 2.1):
        x, y = room.to_wall(wall, rng.uniform(-0.5, 0.5), away)
        if _dining_group(scene, x, y, chairs=int(rng.integers(2, 5)), laid=0.4):
            break


def _living_room(scene: Furnishing, walls: Sequence[Wall]) -> None:
    rng, room, wall = scene.rng, scene.room, walls[0]
    along = float(rng.uniform(-0.5, 0.5))
    stand = scene.at_wall(tables.cabinet(rng), wall, along)
    if stand is not None:
        scene.on(stand, stand.shape.surfaces[0], electronics.television(rng), 0, 0.3)
        _clutter(scene, stand, _DISPLAY, 5, turn=0.5)
    facing = YAW[wall] + np.pi
    couch, sofa, away = seating.couch(rng), None, 2.6
    for away in rng.uniform(2.2, 2.9, 6):
        x, y = room.to_wall(wall, along + rng.normal(0, 0.25), away)
        if sofa := scene.place(couch, x, y, 0.0, facing + rng.normal(0, 0.03)):
            break
    else:
        sofa = scene.along_wall(couch, walls)
    if sofa is not None and rng.random() < 0.4:
        builder = (electronics.laptop, decoration.closed_lying_book, electronics.cell_phone)[int(rng.integers(3))]
        scene.scatter(sofa, sofa.shape.surfaces[0], builder(rng), turn=0.5)
    tx, ty = room.to_wall(wall, along + rng.normal(0, 0.1), away - 0.95)
    if rng.random() < 0.6:
        scene.place(decoration.rug(rng), tx, ty, 0.0, facing, pose="floor", anywhere=False)
    _table_on_rug(scene, tx, ty, facing)
    if rng.random() < 0.7:
        _shelves(scene, [walls[2], walls[3], walls[1]])
    if rng.random() < 0.6:
        _clutter(scene, scene.along_wall(tables.chest(rng), walls[1:]), _DISPLAY, 5, turn=0.5)
    if rng.random() < 0.5:
        x, y = room.to_wall(walls[2], rng.uniform(-1, 1), 0.9)
        _dining_group(scene, x, y, chairs=2, laid=0.3)
    for _ in range(int(rng.integers(0, 3))):
        scene.along_wall(seating.chair(rng), walls[1:])


def _table_on_rug(scene: Furnishing, x: float, y: float, yaw: float) -> None:
    table = scene.place(tables.coffee_table(scene.rng), x, y, 0.0115, yaw + scene.rng.normal(0, 0.04))
    _clutter(scene, table, _LEISURE, 9)


def _bedroom(scene: Furnishing, walls: Sequence[Wall]) -> None:
    rng, wall = scene.rng, walls[0]
    shape = seating.bed(rng)
    for along in rng.uniform(-0.7, 0.7, 6):
        if bed := scene.at_wall(shape, wall, along, gap=0.02):
            break
    if bed is not None and rng.random() < 0.45:
        builder = (electronics.laptop, decoration.closed_lying_book, electronics.cell_phone)[int(rng.integers(3))]
        scene.scatter(bed, bed.shape.surfaces[0], builder(rng), turn=0.8)
    for side in (-1, 1):
        stand = scene.at_wall(tables.nightstand(rng), wall, along + side * (float(shape.size[0]) / 2 + 0.32))
        _clutter(scene, stand, _BEDSIDE, 4, turn=0.6)
    if rng.random() < 0.7:
        _work_place(scene, walls[1:])
    if rng.random() < 0.8:
        chest = scene.along_wall(tables.chest(rng), walls[1:])
        if chest is not None and rng.random() < 0.4:
            scene.on(chest, chest.shape.surfaces[0], electronics.monitor(rng), 0, 0.2)
        _clutter(scene, chest, _DISPLAY, 5, turn=0.5)
    if rng.random() < 0.4:
        scene.along_wall(seating.chair(rng), walls[1:])


def _office(scene: Furnishing, walls: Sequence[Wall]) -> None:
    rng = scene.rng
    _work_place(scene, walls)
    if rng.random() < 0.6:
        _work_place(scene, walls)
    _shelves(scene, walls)
    if rng.random() < 0.5:
        _shelves(scene, walls)
    if rng.random() < 0.5:
        scene.along_wall(seating.couch(rng), walls)
    _clutter(scene, scene.along_wall(tables.cabinet(rng), walls), _DISPLAY, 5, turn=0.5)
    for _ in range(int(rng.integers(0, 2))):
        scene.along_wall(seating.chair(rng), walls)


def _dining_room(scene: Furnishing, walls: Sequence[Wall]) -> None:
    rng, room = scene.rng, scene.room
    for _ in range(5):
        x, y = room.width / 2 + rng.uniform(-0.3, 0.3), room.depth / 2 + rng.uniform(-0.3, 0.3)
        if _dining_group(scene, x, y, chairs=int(rng.integers(3, 7)), laid=0.85):
            break
    for builder in (tables.cabinet, tables.chest):
        if rng.random() < 0.8:
            _clutter(
                scene,
                scene.along_wall(builder(rng), walls),
                {**_DISPLAY, tableware.wine_glass: 2, tableware.bottle: 2, tableware.bowl: 2},
                3.5,
                turn=0.5,
            )
    if rng.random() < 0.35:
        _shelves(scene, walls)
    for _ in range(int(rng.integers(0, 2))):
        scene.along_wall(seating.chair(rng), walls)


def _bathroom(scene: Furnishing, walls: Sequence[Wall]) -> None:
    rng, room, wall = scene.rng, scene.room, walls[0]
    side = float(rng.choice([-1, 1]))
    length = room.wall_length(wall)
    scene.at_wall(bathroom.toilet(rng), wall, -side * (length / 2 - 0.45))
    along = side * (length / 2 - rng.uniform(0.6, 0.8))
    basin = bathroom.washbasin(rng)
    hung = scene.at_wall(basin, wall, along)
    if hung is not None:
        scene.place(bathroom.washstand(rng, basin), hung.x, hung.y, 0.0, hung.yaw)
        scene.at_wall(bathroom.mirror(rng), wall, along, z=1.2, gap=0.003)
    if rng.random() < 0.7:
        scene.along_wall(bathroom.bathtub(rng), [walls[2], walls[3]], gap=0.02)
    scene.along_wall(bathroom.towel(rng), walls, z=float(rng.uniform(0.9, 1.1)), gap=0.006)
    if rng.random() < 0.6:
        cabinet = scene.along_wall(tables.nightstand(rng), walls)
        _clutter(scene, cabinet, _BATH, 6)
    if rng.random() < 0.6:
        scene.place(bathroom.bath_mat(rng), room.width / 2, room.depth / 2, 0.0, rng.uniform(-0.3, 0.3))


_FURNISHERS: dict[str, Callable[[Furnishing, Sequence[Wall]], None]] = {
    "kitchen": _kitchen,
    "living room": _living_room,
    "bedroom": _bedroom,
    "office": _office,
    "dining room": _dining_room,
    "bathroom": _bathroom,
}
