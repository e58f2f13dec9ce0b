"""Random furnished rooms: walls, floor, openings, what hangs on the walls, and the furniture."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from simulation.household.layout.rooms import (
    furnish_bathroom,
    furnish_bedroom,
    furnish_dining_room,
    furnish_kitchen,
    furnish_living_room,
    furnish_office,
)
from simulation.household.materials import (
    COLOURS,
    WOODS,
    Material,
    fabric,
    jitter,
    lightened,
    patterned,
    random_colour,
    scaled,
)
from simulation.household.objects import decoration, electronics, fixtures, person
from simulation.household.scene import (
    WALL_YAW,
    WALLS,
    Lighting,
    ObjectPose,
    Opening,
    Room,
    Scene,
    Wall,
    random_daylight,
    random_night_lighting,
)
from simulation.household.scene_builder import SceneBuilder

_SIDE_LENGTHS = {
    "kitchen": (3.9, 5.0),
    "living room": (4.6, 5.8),
    "bedroom": (3.9, 4.8),
    "office": (3.6, 4.6),
    "dining room": (4.0, 5.0),
    "bathroom": (2.7, 3.4),
}
"""Least and greatest length of a room's walls in metres."""

_WALL_COLOURS = ("white", "white", "white", "beige", "beige", "yellow", "blue", "green", "gray")


def random_room(rng: np.random.Generator, kind: str, walls: Sequence[Wall]) -> Room:
    """Build a random room without furniture.

    Args:
        rng: source of every random choice.
        kind: one of ``ROOM_KINDS``.
        walls: the four walls; the first has no opening, the second has the door, the others may have windows.
    """
    width, depth = (float(length) for length in rng.uniform(*_SIDE_LENGTHS[kind], 2))
    wall_colour, rgb = random_colour(rng, *_WALL_COLOURS)
    if wall_colour not in ("white", "beige"):
        rgb = lightened(rgb, float(rng.uniform(0.5, 0.75)))
    wall = Material("plaster", rgb, roughness=0.9, seed=int(rng.integers(10_000)))
    floor, floor_noun = _random_floor(rng, kind)
    wall_tiles = _random_wall_tiles(rng) if kind in ("kitchen", "bathroom") else None
    lengths = {"north": width, "south": width, "west": depth, "east": depth}
    door_offset = rng.uniform(-1, 1) * (lengths[walls[1]] / 2 - 0.75)
    openings = [Opening(walls[1], float(door_offset), 0.86, 0.0, 2.02)]
    for index, name in enumerate(walls[2:]):
        if index == 0 or rng.random() < 0.35:
            openings.append(_random_window(rng, kind, name, lengths[name]))
    return Room(
        kind=kind,
        width=width,
        depth=depth,
        height=float(rng.uniform(2.45, 2.7)),
        wall=wall,
        wall_colour=wall_colour,
        floor=floor,
        floor_noun=floor_noun,
        wall_tiles=wall_tiles,
        openings=tuple(openings),
    )


def _random_window(rng: np.random.Generator, kind: str, wall: Wall, wall_length: float) -> Opening:
    bathroom = kind == "bathroom"
    width = 0.75 if bathroom else min(float(rng.uniform(1.0, 2.0)), wall_length - 1.3)
    bottom = 1.25 if bathroom else float(rng.uniform(0.85, 1.0))
    along = float(rng.uniform(-0.5, 0.5) * (wall_length / 2 - width / 2 - 0.5))
    return Opening(wall, along, width, bottom, float(rng.uniform(2.05, 2.25)))


def _random_wall_tiles(rng: np.random.Generator) -> Material:
    rgb = jitter(rng, COLOURS[str(rng.choice(["white", "white", "beige", "gray", "blue"]))])
    size = float(rng.choice([0.1, 0.15, 0.2]))
    return patterned(rng, "tiles", rgb, (0.72, 0.71, 0.69), roughness=0.15, scale=size)


def _random_floor(rng: np.random.Generator, kind: str) -> tuple[Material, str]:
    """Sample a floor: its material and its name in captions."""
    draw = rng.random()
    if kind == "bathroom" or (kind == "kitchen" and draw < 0.5):
        rgb = jitter(rng, COLOURS[str(rng.choice(["white", "gray", "beige", "brown"]))])
        grout = scaled(rgb, (0.7, 0.7, 0.7))
        size = float(rng.choice([0.2, 0.3, 0.4]))
        return patterned(rng, "tiles", rgb, grout, roughness=0.25, scale=size), "tiled floor"
    if kind in ("bedroom", "living room") and draw < 0.25:
        return fabric(rng, random_colour(rng, "gray", "beige", "brown", "blue")[1], scale=3), "carpet"
    rgb = jitter(rng, WOODS[str(rng.choice(list(WOODS)))])
    gap = scaled(rgb, (0.7, 0.66, 0.62))
    return patterned(rng, "planks", rgb, gap, roughness=float(rng.uniform(0.3, 0.5))), "wooden floor"


_CURTAIN_BOTTOM = 0.04
"""Height of the hem above the floor in metres."""


def add_fixtures(builder: SceneBuilder, lighting: Lighting) -> None:
    """Place the door, the windows with curtains and sill plants, and the ceiling lamps."""
    rng, room = builder.rng, builder.room
    curtain_colour, rgb = random_colour(rng, "white", "beige", "gray", "red", "blue", "green")
    cloth = fabric(rng, rgb)
    has_curtains = rng.random() < 0.6 and room.kind not in ("bathroom", "kitchen")
    for opening in room.openings:
        if opening.is_door:
            _add_door(builder, opening)
        else:
            _add_window(builder, opening, (cloth, curtain_colour) if has_curtains else None)
    emission = lighting.lamp_strength if lighting.lamps_on else 0.0
    for x, y in [(0.5, 0.5)] if room.width < 4.6 else [(0.3, 0.5), (0.7, 0.5)]:
        lamp = fixtures.ceiling_lamp(rng, emission, lighting.lamp_tint)
        pose = ObjectPose(room.width * x, room.depth * y, room.height)
        builder.place(lamp, pose, placement="wall", check_room=False)


def add_wall_decoration(builder: SceneBuilder) -> None:
    """Hang a clock and pictures."""
    rng = builder.rng
    if rng.random() < 0.6:
        builder.place_along_walls(electronics.wall_clock(rng), WALLS, z=float(rng.uniform(1.55, 1.8)), gap=0.004)
    for _ in range(int(rng.integers(1, 4)) if builder.room.kind != "bathroom" else 0):
        builder.place_along_walls(decoration.picture(rng), WALLS, z=float(rng.uniform(1.25, 1.5)), gap=0.004)


def _add_door(builder: SceneBuilder, opening: Opening) -> None:
    x, y = builder.room.floor_point(opening.wall, opening.along, 0.0)
    pose = ObjectPose(x, y, 0.0, WALL_YAW[opening.wall])
    builder.place(fixtures.door(builder.rng, opening.width, opening.top), pose, placement="wall", check_room=False)
    builder.reserve_in_front(replace(opening, width=opening.width + 0.2, top=2.1), 0.85)


def _add_window(builder: SceneBuilder, opening: Opening, curtain: tuple[Material, str] | None) -> None:
    """Place a window, its curtains (of a cloth and the name of its colour) and up to three plants on the sill."""
    rng, room, yaw = builder.rng, builder.room, WALL_YAW[opening.wall]
    x, y = room.floor_point(opening.wall, opening.along, 0.0)
    window = builder.place(
        fixtures.window(rng, opening.width, opening.top - opening.bottom),
        ObjectPose(x, y, opening.bottom, yaw),
        placement="wall",
        check_room=False,
    )
    if curtain:
        _add_curtains(builder, opening, *curtain)
    builder.reserve_in_front(replace(opening, width=opening.width + 0.1, bottom=opening.bottom - 0.03), 0.3)
    if window is not None:
        for _ in range(int(rng.choice([0, 1, 2, 3], p=[0.25, 0.35, 0.25, 0.15]))):
            builder.scatter_on(window.surfaces[0], decoration.sill_plant(rng), turn=0.0)


def _add_curtains(builder: SceneBuilder, opening: Opening, cloth: Material, colour: str) -> None:
    """Place a curtain on either side of a window."""
    rng, yaw = builder.rng, WALL_YAW[opening.wall]
    height = opening.top + 0.12 - _CURTAIN_BOTTOM
    for side in (-1, 1):
        width = float(rng.uniform(0.25, 0.4))
        along = opening.along + side * (opening.width / 2 + 0.09 + width / 2)
        x, y = builder.room.floor_point(opening.wall, along, 0.09)
        curtain = fixtures.curtain(rng, width, height, cloth, colour)
        builder.place(curtain, ObjectPose(x, y, _CURTAIN_BOTTOM, yaw), placement="wall")


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
        builder.place_along_walls(decoration.floor_plant(rng), WALLS, gap=0.05)
    return Scene(builder.room, tuple(builder.objects), lighting)


def _add_person(builder: SceneBuilder) -> None:
    """Place a person on the free floor, if a random point of it is found."""
    room, rng = builder.room, builder.rng
    mesh = person.standing_person(rng)
    for _ in range(30):
        x, y = rng.uniform(0.5, room.width - 0.5), rng.uniform(0.5, room.depth - 0.5)
        if builder.place(mesh, ObjectPose(x, y, 0.0, rng.uniform(-np.pi, np.pi))):
            return
