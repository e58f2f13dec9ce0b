"""House plants in pots."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, cylinder, join, lathe, sheet, tube
from simulation.household.object_mesh import ObjectMesh


def potted_plant(rng: np.random.Generator) -> ObjectMesh:
    """Build a house plant for a table."""
    return _plant(rng, rng.uniform(0.055, 0.085), rng.uniform(2.8, 4.2))


def sill_plant(rng: np.random.Generator) -> ObjectMesh:
    """Build a small house plant for a window sill or a shelf."""
    return _plant(rng, rng.uniform(0.042, 0.052), rng.uniform(1.7, 2.1))


def floor_plant(rng: np.random.Generator) -> ObjectMesh:
    """Build a large house plant for the floor."""
    return _plant(rng, rng.uniform(0.13, 0.18), rng.uniform(2.8, 4.2))


def _plant(rng: np.random.Generator, radius: float, spread: float) -> ObjectMesh:
    """Build a plant in a pot.

    Args:
        rng: source of every random choice.
        radius: of the pot in metres.
        spread: length of the stems or leaves in units of the radius.
    """
    rgb = materials.random_colour(rng, "white", "gray", "black", "blue", "yellow")[1]
    clay = rng.random() < 0.4
    pot = (
        materials.plain(rng, materials.jitter(rng, (0.62, 0.30, 0.18)), roughness=0.8)
        if clay
        else materials.plain(rng, rgb, roughness=0.3)
    )
    height = radius * rng.uniform(1.5, 2.0)
    rim = radius * 1.06 if clay else radius
    profile = [
        (radius * 0.68, 0),
        (radius * 0.72, 0.003),
        (radius, height * 0.82),
        (rim, height * 0.82),
        (rim, height),
        (radius * 0.9, height),
        (radius * 0.86, height * 0.86),
        (0, height * 0.86),
    ]
    parts = [
        lathe(profile, pot),
        cylinder(
            radius * 0.86,
            0.004,
            [0, 0, height * 0.86],
            materials.patterned(rng, "fruit", (0.13, 0.08, 0.05), (0.05, 0.03, 0.02), roughness=1.0),
        ),
    ]
    green = materials.patterned(
        rng, "foliage", materials.jitter(rng, (0.13, 0.36, 0.10), 0.06), (0.30, 0.50, 0.16), roughness=0.45
    )
    style = rng.choice(["blades", "bush", "broad"])
    size = radius * spread
    base = height * 0.86
    leaves = []
    if style == "blades":
        for _ in range(int(rng.integers(14, 26))):
            lean, length = rng.uniform(0.1, 0.55), size * rng.uniform(0.7, 1.25)
            leaves.append(
                _leaf(length, length * 0.07 + 0.006, 0.4 + lean, green, upright=True).transformed(
                    [0, 0, base], turn=rng.uniform(0, 6.28)
                )
            )
    else:
        stems = int(rng.integers(9, 15)) if style == "bush" else int(rng.integers(6, 10))
        stalks = []
        for _ in range(stems):
            turn, tilt = rng.uniform(0, 6.28), rng.uniform(0.1, 0.65)
            length = size * rng.uniform(0.4, 0.95)
            direction = np.array([np.cos(turn) * np.sin(tilt), np.sin(turn) * np.sin(tilt), np.cos(tilt)])
            tip = direction * length + [0, 0, base]
            middle = np.array([0, 0, base]) * 0.45 + tip * 0.55 + [0, 0, length * 0.08]
            stalks.append(tube(np.stack([[0, 0, base], middle, tip]), radius * 0.03 + 0.0012, green, segments=5))
            fractions = np.linspace(0.35, 1.0, int(rng.integers(5, 8))) if style == "bush" else [1.0]
            for t in fractions:
                position = np.array([0, 0, base]) * (1 - t) + tip * t
                leaf_length = size * (rng.uniform(0.2, 0.32) if style == "bush" else rng.uniform(0.45, 0.65))
                leaf_width = leaf_length * (0.42 if style == "bush" else 0.5)
                leaves.append(
                    _leaf(leaf_length, leaf_width, rng.uniform(0.3, 1.2), green).transformed(
                        position, turn=turn + rng.normal(0, 1.1 if style == "bush" else 0.4)
                    )
                )
        parts.append(join(stalks))
    parts.append(join(leaves))
    return ObjectMesh("potted plant", tuple(parts), "green")


def _leaf(length: float, width: float, droop: float, green: materials.Material, *, upright: bool = False) -> MeshPart:
    """Build a pointed leaf from the origin along x that bends down by about ``droop`` radians; sizes in metres."""
    u = np.linspace(0, 1, 8)
    half = width / 2 * np.sin(np.pi * np.clip(u, 0.02, 0.98) ** 0.75)
    angle = (1.45 if upright else 0.75) - droop * (1.8 if upright else 1.2) * u
    step = length / 7
    x = np.concatenate([[0], np.cumsum(np.cos(angle[:-1]) * step)])
    z = np.concatenate([[0], np.cumsum(np.sin(angle[:-1]) * step)])
    grid = np.stack(
        [np.stack([x, s * half, z + abs(s) * half * 0.35], axis=1) for s in (-1.0, -0.5, 0.0, 0.5, 1.0)], axis=1
    )
    return sheet(grid, green)
