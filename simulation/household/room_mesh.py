"""Meshes of a room's walls, floor, ceiling and skirting boards, in the room's frame."""

from typing import NamedTuple

from simulation.household.materials import Material
from simulation.household.mesh import MeshPart, box
from simulation.household.scene import WALL_THICKNESS, WALL_YAW, WALLS, Room, Wall

_SKIRTING_HEIGHT = 0.07
_SKIRTING_THICKNESS = 0.01
_DOOR_FRAME = 0.075
"""Width of a door's frame on either side, where the skirting board ends."""
_TILE_THICKNESS = 0.004
_WHITE = Material("plain", (0.92, 0.92, 0.91), roughness=0.9)
_CEILING = Material("plaster", _WHITE.rgb, roughness=0.95)


class _Panel(NamedTuple):
    """A rectangle of a wall; metres along the wall from its centre and above the floor."""

    start: float
    end: float
    bottom: float
    top: float


def room_parts(room: Room) -> list[MeshPart]:
    """Build walls with holes for the windows, wall tiles, skirting boards, floor and ceiling.

    Doors need no hole: they are closed and stand in front of the wall.
    """
    centre = [room.width / 2, room.depth / 2]
    size = [room.width + 2 * WALL_THICKNESS, room.depth + 2 * WALL_THICKNESS, 0.1]
    parts = [
        box(size, [*centre, -0.05], room.floor, bevel=0),
        box(size, [*centre, room.height + 0.05], _CEILING, bevel=0),
    ]
    for wall in WALLS:
        panels = _wall_panels(room, wall)
        parts += [_slab(room, wall, panel, room.wall, WALL_THICKNESS, in_front=False) for panel in panels]
        parts += _tiles(room, wall, panels)
        parts += _skirting_boards(room, wall)
    return parts


def _wall_panels(room: Room, wall: Wall) -> list[_Panel]:
    """Divide a wall into rectangles around its windows."""
    half = room.wall_length(wall) / 2
    windows = [opening for opening in room.openings if opening.wall == wall and not opening.is_door]
    panels: list[_Panel] = []
    left = -half - WALL_THICKNESS
    for window in sorted(windows, key=lambda window: window.along):
        start, end = window.along - window.width / 2, window.along + window.width / 2
        panels += [
            _Panel(left, start, 0.0, room.height),
            _Panel(start, end, 0.0, window.bottom),
            _Panel(start, end, window.top, room.height),
        ]
        left = end
    return [*panels, _Panel(left, half + WALL_THICKNESS, 0.0, room.height)]


def _tiles(room: Room, wall: Wall, panels: list[_Panel]) -> list[MeshPart]:
    """Tile the lower part of a bathroom's walls or a kitchen's splashback."""
    if room.wall_tiles is None:
        return []
    half = room.wall_length(wall) / 2
    low, high = (0.0, 1.4) if room.kind == "bathroom" else (0.85, 1.5)
    tiled = [
        _Panel(max(panel.start, -half), min(panel.end, half), max(panel.bottom, low), min(panel.top, high))
        for panel in panels
    ]
    return [
        _slab(room, wall, panel, room.wall_tiles, _TILE_THICKNESS, in_front=True)
        for panel in tiled
        if panel.top > panel.bottom
    ]


def _skirting_boards(room: Room, wall: Wall) -> list[MeshPart]:
    half = room.wall_length(wall) / 2
    edges = [-half]
    for door in room.openings:
        if door.wall == wall and door.is_door:
            edges += [door.along - door.width / 2 - _DOOR_FRAME, door.along + door.width / 2 + _DOOR_FRAME]
    edges.append(half)
    boards = [_Panel(start, end, 0.0, _SKIRTING_HEIGHT) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return [
        _slab(room, wall, board, _WHITE, _SKIRTING_THICKNESS, in_front=True)
        for board in boards
        if board.end > board.start
    ]


def _slab(room: Room, wall: Wall, panel: _Panel, material: Material, thickness: float, *, in_front: bool) -> MeshPart:
    """Build a slab in front of the wall's inner face or behind it."""
    start, end, bottom, top = panel
    part = box([end - start, thickness, top - bottom], [(start + end) / 2, 0, (bottom + top) / 2], material, bevel=0)
    face = -thickness if in_front else 0.0
    x, y = room.floor_point(wall, 0.0, -(face + thickness / 2))
    return part.transformed([x, y, 0.0], turn=WALL_YAW[wall])
