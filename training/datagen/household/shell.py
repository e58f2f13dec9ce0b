"""Walls with their openings, floor, ceiling, skirting boards: the parts of a room's shell in the room's frame."""

from training.datagen.household.materials import Material
from training.datagen.household.mesh import Part, box
from training.datagen.household.models.fixtures import WALL
from training.datagen.household.scene import WALLS, YAW, Room, Wall

_SKIRTING = 0.07


def shell_parts(room: Room) -> list[Part]:
    """Everything that is neither furniture nor a fixture; windows are holes."""
    white = Material("plain", (0.92, 0.92, 0.91), roughness=0.9)
    ceiling = Material("plaster", white.rgb, roughness=0.95)
    middle = [room.width / 2, room.depth / 2]
    size = [room.width + 2 * WALL, room.depth + 2 * WALL, 0.1]
    parts = [
        box(size, [*middle, -0.05], room.floor, bevel=0),
        box(size, [*middle, room.height + 0.05], ceiling, bevel=0),
    ]
    for wall in WALLS:
        parts += _wall(room, wall, white)
    return parts


def _wall(room: Room, wall: Wall, white: Material) -> list[Part]:
    half = room.wall_length(wall) / 2
    holes = sorted((o for o in room.openings if o.wall == wall and o.low > 0), key=lambda o: o.along)
    doors = [o for o in room.openings if o.wall == wall and o.low == 0]
    panels: list[tuple[float, float, float, float]] = []
    left = -half - WALL
    for hole in holes:
        start, end = hole.along - hole.width / 2, hole.along + hole.width / 2
        panels += [(left, start, 0.0, room.height), (start, end, 0.0, hole.low), (start, end, hole.high, room.height)]
        left = end
    panels.append((left, half + WALL, 0.0, room.height))
    parts = [_slab(room, wall, panel, room.wall, 0.0, WALL) for panel in panels]
    if room.tiled_wall is not None:
        low, high = (0.0, 1.4) if room.kind == "bathroom" else (0.85, 1.5)
        for start, end, bottom, top in panels:
            if min(top, high) > max(bottom, low):
                parts.append(
                    _slab(
                        room,
                        wall,
                        (max(start, -half), min(end, half), max(bottom, low), min(top, high)),
                        room.tiled_wall,
                        -0.004,
                        0.004,
                        upright=True,
                    )
                )
    edges = [
        -half,
        *(x for door in doors for x in (door.along - door.width / 2 - 0.075, door.along + door.width / 2 + 0.075)),
        half,
    ]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end > start:
            parts.append(_slab(room, wall, (start, end, 0.0, _SKIRTING), white, -0.01, 0.01))
    return parts


def _slab(
    room: Room,
    wall: Wall,
    panel: tuple[float, float, float, float],
    material: Material,
    face: float,
    thick: float,
    *,
    upright: bool = False,
) -> Part:
    """A piece of wall from one place along it to another; ``face`` is how far behind the wall's face it begins."""
    start, end, low, high = panel
    part = box([end - start, thick, high - low], [(start + end) / 2, 0, (low + high) / 2], material, bevel=0)
    x, y = room.to_wall(wall, 0.0, -(face + thick / 2))
    return part.moved([x, y, 0.0], turn=YAW[wall])
