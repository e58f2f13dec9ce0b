"""Windows, doors, curtains and ceiling lamps."""

import numpy as np

from simulation.household.materials import COLOURS, RGB, Material, jitter, metal, plain, wood
from simulation.household.mesh import MeshPart, ObjectMesh, SupportSurface, box, cylinder, ellipsoid, lathe, sheet, tube
from simulation.household.scene import WALL_THICKNESS


def window(rng: np.random.Generator, width: float, height: float) -> ObjectMesh:
    """Build the frame and the sill of a window without panes.

    Args:
        rng: source of every random choice.
        width: of the opening in metres.
        height: of the opening in metres; z = 0 is its lower edge, y = 0 the wall's inner face.
    """
    white = plain(rng, jitter(rng, COLOURS["white"], 0.01), roughness=0.3) if rng.random() < 0.75 else wood(rng)
    frame, y = 0.055, WALL_THICKNESS * 0.6
    parts = [box([frame, 0.06, height], [sx * (width - frame) / 2, y, height / 2], white) for sx in (-1, 1)]
    parts += [box([width, 0.06, frame], [0, y, z], white) for z in (frame / 2, height - frame / 2)]
    for x in np.linspace(-width / 2, width / 2, round(width / 0.65) + 1)[1:-1]:
        parts.append(box([0.06, 0.05, height - frame], [x, y, height / 2], white))
    if rng.random() < 0.3:
        parts.append(box([width - frame, 0.045, 0.035], [0, y, height * 0.68], white))
    parts.append(box([width + 0.1, 0.30, 0.03], [0, -0.05, -0.016], white, bevel=0.006))
    handle = metal(rng)
    parts.append(box([0.02, 0.03, 0.11], [frame / 2, y - 0.04, height * 0.45], handle))
    sill = SupportSurface(0, -0.07, width / 2 - 0.06, 0.13, 0.0, "sill")
    return ObjectMesh("window", tuple(parts), surfaces=(sill,))


def curtain(rng: np.random.Generator, width: float, height: float, cloth: Material, colour: str) -> ObjectMesh:
    """Build a curtain in folds, ``width`` by ``height`` metres; its hem is at z = 0."""
    count = 90
    x = np.linspace(-width / 2, width / 2, count)
    rows = []
    phase = rng.uniform(0, 6.28)
    for z in np.linspace(0, height, 7):
        swing = 0.026 * (1 + 0.35 * np.sin(x * 7 + phase)) * (1.15 - 0.35 * z / height)
        rows.append(
            np.column_stack(
                [x * (1.06 - 0.06 * z / height), swing * np.sin(x * 2 * np.pi / 0.085 + phase), np.full(count, z)]
            )
        )
    return ObjectMesh("curtain", (sheet(np.stack(rows), cloth),), colour)


def door(rng: np.random.Generator, width: float = 0.86, height: float = 2.02) -> ObjectMesh:
    """Build a closed door with its frame, in front of the wall's inner face at y = 0; sizes in metres."""
    wooden = rng.random() < 0.45
    finish = wood(rng) if wooden else plain(rng, jitter(rng, COLOURS["white"], 0.01), roughness=0.35)
    trim = finish if rng.random() < 0.6 else plain(rng, jitter(rng, COLOURS["white"], 0.01), roughness=0.35)
    y = -0.012
    parts = [box([width, 0.024, height], [0, y, height / 2], finish, bevel=0.002)]
    parts += [
        box([0.075, 0.045, height + 0.07], [sx * (width / 2 + 0.037), -0.02, (height + 0.07) / 2], trim)
        for sx in (-1, 1)
    ]
    parts.append(box([width, 0.045, 0.075], [0, -0.02, height + 0.037], trim))
    if rng.random() < 0.6:
        for low, high in ((0.12, 0.9), (1.05, height - 0.12)):
            parts.append(box([width - 0.26, 0.008, high - low], [0, y - 0.013, (low + high) / 2], finish, bevel=0.003))
    steel, side = metal(rng), 1 if rng.random() < 0.5 else -1
    x = side * (width / 2 - 0.07)
    parts.append(
        tube(
            [[x, -0.024, 1.02], [x, -0.07, 1.02], [x - side * 0.02, -0.075, 1.02], [x - side * 0.12, -0.075, 1.02]],
            0.009,
            steel,
        )
    )
    parts.append(box([0.04, 0.006, 0.2], [x, -0.027, 1.0], steel))
    return ObjectMesh("door", tuple(parts), "" if wooden else "white", "wooden" if wooden else "")


def ceiling_lamp(rng: np.random.Generator, emission: float, tint: RGB) -> ObjectMesh:
    """Build a flat disc or a globe on a cable below the ceiling, which is at z = 0; ``emission`` as in ``Material``."""
    light = Material("plain", tint, roughness=0.8, emission=emission)
    white = plain(rng, (0.9, 0.9, 0.9))
    if rng.random() < 0.55:
        parts: list[MeshPart] = [
            cylinder(0.17, 0.07, [0, 0, -0.075], light),
            cylinder(0.18, 0.015, [0, 0, -0.016], white),
        ]
    else:
        parts = [
            tube([[0.0, 0.0, 0.0], [0.0, 0.0, -0.28]], 0.004, white),
            ellipsoid([0.13, 0.13, 0.13], [0, 0, -0.4], light.emitting(emission * 1.2)),
            lathe([(0.04, -0.29), (0.04, -0.26), (0.004, -0.25)], white),
        ]
    return ObjectMesh("lamp", tuple(parts))
