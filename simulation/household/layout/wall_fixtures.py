"""Windows with curtains and plants, the door, ceiling lamps, and what hangs on the walls."""

from dataclasses import replace

from simulation.household import materials
from simulation.household.lighting import Lighting
from simulation.household.objects import clocks, decoration, fixtures, plants
from simulation.household.oriented_boxes import ObjectPose
from simulation.household.scene import WALL_YAW, WALLS, Opening
from simulation.household.scene_builder import SceneBuilder

_CURTAIN_BOTTOM = 0.04
"""Height of the hem above the floor in metres."""


def add_fixtures(builder: SceneBuilder, lighting: Lighting) -> None:
    """Place the door, the windows with curtains and sill plants, and the ceiling lamps."""
    rng, room = builder.rng, builder.room
    curtain_colour, rgb = materials.random_colour(rng, "white", "beige", "gray", "red", "blue", "green")
    cloth = materials.fabric(rng, rgb)
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
        builder.place_along_walls(clocks.wall_clock(rng), WALLS, z=float(rng.uniform(1.55, 1.8)), gap=0.004)
    for _ in range(int(rng.integers(1, 4)) if builder.room.kind != "bathroom" else 0):
        builder.place_along_walls(decoration.picture(rng), WALLS, z=float(rng.uniform(1.25, 1.5)), gap=0.004)


def _add_door(builder: SceneBuilder, opening: Opening) -> None:
    x, y = builder.room.floor_point(opening.wall, opening.along, 0.0)
    pose = ObjectPose(x, y, 0.0, WALL_YAW[opening.wall])
    builder.place(fixtures.door(builder.rng, opening.width, opening.top), pose, placement="wall", check_room=False)
    builder.reserve_in_front(replace(opening, width=opening.width + 0.2, top=2.1), 0.85)


def _add_window(builder: SceneBuilder, opening: Opening, curtain: tuple[materials.Material, str] | None) -> None:
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
            builder.scatter_on(window.surfaces[0], plants.sill_plant(rng), turn=0.0)


def _add_curtains(builder: SceneBuilder, opening: Opening, cloth: materials.Material, colour: str) -> None:
    """Place a curtain on either side of a window."""
    rng, yaw = builder.rng, WALL_YAW[opening.wall]
    height = opening.top + 0.12 - _CURTAIN_BOTTOM
    for side in (-1, 1):
        width = float(rng.uniform(0.25, 0.4))
        along = opening.along + side * (opening.width / 2 + 0.09 + width / 2)
        x, y = builder.room.floor_point(opening.wall, along, 0.09)
        curtain = fixtures.curtain(rng, width, height, cloth, colour)
        builder.place(curtain, ObjectPose(x, y, _CURTAIN_BOTTOM, yaw), placement="wall")
