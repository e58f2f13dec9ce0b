"""Round clocks for walls and tables."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, box, cylinder, join, lathe, tube
from simulation.household.object_mesh import ObjectMesh


def wall_clock(rng: np.random.Generator) -> ObjectMesh:
    """Build a round clock for a wall; z = 0 is its lower edge."""
    radius = rng.uniform(0.12, 0.18)
    return _clock(rng, radius, 0.035)


def table_clock(rng: np.random.Generator) -> ObjectMesh:
    """Build a small round clock on two feet."""
    face = _clock(rng, rng.uniform(0.045, 0.06), 0.045)
    dark = materials.plain(rng, (0.05, 0.05, 0.05))
    lifted = [part.transformed([0, 0, 0.012]) for part in face.parts]
    feet = [tube([[sx * 0.03, 0.01, 0.002], [sx * 0.022, 0.01, 0.02]], 0.005, dark) for sx in (-1, 1)]
    return ObjectMesh("clock", (*lifted, *feet), face.colour)


def _clock(rng: np.random.Generator, radius: float, depth: float) -> ObjectMesh:
    """Build a round clock with a rim, hour marks and hands at a random time; its face is towards -y."""
    colour, rgb = materials.random_colour(rng, "black", "white", "silver", "red", "brown")
    rim = materials.metal(rng) if colour == "silver" else materials.plain(rng, rgb, roughness=0.3)
    white = materials.plain(rng, (0.93, 0.92, 0.88), roughness=0.5)
    ink = materials.plain(rng, (0.02, 0.02, 0.02))

    def facing(part: MeshPart, forward: float) -> MeshPart:
        """Turn a part that lies on its back upright, and move it by ``forward`` along y."""
        return part.transformed([0, forward, radius * 1.08], tilt=np.pi / 2)

    ring = [
        (radius * 0.93, depth * 0.2),
        (radius * 0.93, depth),
        (radius * 1.0, depth),
        (radius * 1.07, depth * 0.6),
        (radius * 1.08, 0),
        (radius * 0.9, 0),
    ]
    parts = [
        facing(lathe([*ring, ring[0]], rim, segments=48), depth / 2),
        facing(cylinder(radius * 0.94, depth * 0.45, [0, 0, 0], white), depth / 2),
    ]
    front = depth / 2 - depth * 0.45 - 0.001
    marks = []
    for hour in range(12):
        angle = hour * np.pi / 6
        size = [radius * (0.06 if hour % 3 == 0 else 0.03), radius * (0.17 if hour % 3 == 0 else 0.1), 0.001]
        centre = radius * 0.78 * np.array([-np.sin(angle), np.cos(angle), 0])
        marks.append(box(size, [0, 0, 0], ink, bevel=0).transformed(centre, turn=angle))
    parts.append(facing(join(marks), front))
    minute, hour_angle = rng.uniform(0, 2 * np.pi, 2)
    for angle, length, width, height in ((minute, 0.72, 0.03, 0.002), (hour_angle, 0.48, 0.05, 0.004)):
        hand = box(
            [radius * width, radius * length, 0.001], [0, radius * length * 0.42, height], ink, bevel=0
        ).transformed(turn=angle)
        parts.append(facing(hand, front))
    return ObjectMesh("clock", tuple(parts), colour)
