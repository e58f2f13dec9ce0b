"""Random walls, floor, door and windows."""

from collections.abc import Sequence

import numpy as np

from simulation.household import materials
from simulation.household.scene import Opening, Room, Wall

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
        kind: one of ``random_scene.ROOM_KINDS``.
        walls: the four walls; the first has no opening, the second has the door, the others may have windows.
    """
    width, depth = (float(length) for length in rng.uniform(*_SIDE_LENGTHS[kind], 2))
    wall_colour, rgb = materials.random_colour(rng, *_WALL_COLOURS)
    if wall_colour not in ("white", "beige"):
        rgb = materials.lightened(rgb, float(rng.uniform(0.5, 0.75)))
    wall = materials.Material("plaster", rgb, roughness=0.9, seed=int(rng.integers(10_000)))
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


def _random_wall_tiles(rng: np.random.Generator) -> materials.Material:
    rgb = materials.jitter(rng, materials.COLOURS[str(rng.choice(["white", "white", "beige", "gray", "blue"]))])
    size = float(rng.choice([0.1, 0.15, 0.2]))
    return materials.patterned(rng, "tiles", rgb, (0.72, 0.71, 0.69), roughness=0.15, scale=size)


def _random_floor(rng: np.random.Generator, kind: str) -> tuple[materials.Material, str]:
    """Sample a floor: its material and its name in captions."""
    draw = rng.random()
    if kind == "bathroom" or (kind == "kitchen" and draw < 0.5):
        rgb = materials.jitter(rng, materials.COLOURS[str(rng.choice(["white", "gray", "beige", "brown"]))])
        grout = materials.scaled(rgb, (0.7, 0.7, 0.7))
        size = float(rng.choice([0.2, 0.3, 0.4]))
        return materials.patterned(rng, "tiles", rgb, grout, roughness=0.25, scale=size), "tiled floor"
    if kind in ("bedroom", "living room") and draw < 0.25:
        return materials.fabric(
            rng, materials.random_colour(rng, "gray", "beige", "brown", "blue")[1], scale=3
        ), "carpet"
    rgb = materials.jitter(rng, materials.WOODS[str(rng.choice(list(materials.WOODS)))])
    gap = materials.scaled(rgb, (0.7, 0.66, 0.62))
    return materials.patterned(rng, "planks", rgb, gap, roughness=float(rng.uniform(0.3, 0.5))), "wooden floor"
