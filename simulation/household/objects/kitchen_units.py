"""Fitted units of a kitchen: cupboards, the counter and the sink."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, box, cylinder, tube
from simulation.household.object_mesh import ObjectMesh, SupportSurface
from simulation.household.objects.taps import tap

COUNTER_HEIGHT = 0.90
"""Metres from the floor to the top of the counter."""
COUNTER_DEPTH = 0.60
"""Metres from the wall to the front of the counter."""
SINK_UNIT_WIDTH = 0.8
"""Metres."""


def door_handle(
    width: float, x: float, y: float, z: float, material: materials.Material, *, upright: bool = False
) -> list[MeshPart]:
    """Build a bar on two posts, with its centre at (x, z), in front of a door whose face is at ``y``."""
    a, b = ((x, z - width / 2), (x, z + width / 2)) if upright else ((x - width / 2, z), (x + width / 2, z))
    bar = tube([[a[0], y - 0.035, a[1]], [b[0], y - 0.035, b[1]]], 0.008, material)
    posts = [
        tube(
            [
                [a[0] + f * (b[0] - a[0]), y, a[1] + f * (b[1] - a[1])],
                [a[0] + f * (b[0] - a[0]), y - 0.035, a[1] + f * (b[1] - a[1])],
            ],
            0.006,
            material,
        )
        for f in (0.08, 0.92)
    ]
    return [bar, *posts]


def _front(
    rng: np.random.Generator,
    width: float,
    low: float,
    high: float,
    face: float,
    front: materials.Material,
    bar: materials.Material,
) -> list[MeshPart]:
    """Build a door or drawers between ``low`` and ``high`` above the floor, in front of the plane y = ``face``."""
    parts = []
    if rng.random() < 0.35:
        for z in np.linspace(low, high, 4)[:-1]:
            drawer_height = (high - low) / 3
            parts.append(
                box([width - 0.006, 0.02, drawer_height - 0.006], [0, face + 0.01, z + drawer_height / 2], front)
            )
            parts += door_handle(width * 0.3, 0, face, z + drawer_height * 0.75, bar)
    else:
        parts.append(box([width - 0.006, 0.02, high - low - 0.006], [0, face + 0.01, (low + high) / 2], front))
        parts += door_handle(0.14, width / 2 - 0.06, face, high - 0.12, bar, upright=True)
    return parts


def base_unit(
    rng: np.random.Generator, front: materials.Material, counter: materials.Material, width: float
) -> ObjectMesh:
    """Build a cupboard ``width`` metres wide under a section of the counter."""
    face, bar = -COUNTER_DEPTH / 2 + 0.03, materials.metal(rng)
    parts = [
        box(
            [width, COUNTER_DEPTH - 0.05, COUNTER_HEIGHT - 0.14],
            [0, 0.025, COUNTER_HEIGHT / 2 + 0.03],
            front,
            bevel=0.001,
        ),
        box([width, COUNTER_DEPTH - 0.12, 0.1], [0, 0.05, 0.05], materials.plain(rng, (0.1, 0.1, 0.1)), bevel=0),
        box([width, COUNTER_DEPTH, 0.038], [0, 0, COUNTER_HEIGHT - 0.019], counter, bevel=0.003),
        *_front(rng, width, 0.11, COUNTER_HEIGHT - 0.045, face - 0.02, front, bar),
    ]
    top = SupportSurface(0, 0, width / 2 - 0.01, COUNTER_DEPTH / 2 - 0.02, COUNTER_HEIGHT)
    return ObjectMesh("counter", tuple(parts), surfaces=(top,))


def sink_unit(rng: np.random.Generator, front: materials.Material, counter: materials.Material) -> ObjectMesh:
    """Build a cupboard under a section of the counter with a hole for ``kitchen_sink``."""
    width = SINK_UNIT_WIDTH
    closed = base_unit(rng, front, counter, width)
    top, hole = COUNTER_HEIGHT - 0.019, (width - 0.24, 0.36)
    cover = [p for i, p in enumerate(closed.parts) if i not in (0, 2)]
    side_rim, front_rim = (width - hole[0]) / 2, (COUNTER_DEPTH - hole[1]) / 2
    cover += [
        box([side_rim, COUNTER_DEPTH, 0.038], [sx * (width - side_rim) / 2, 0, top], counter, bevel=0) for sx in (-1, 1)
    ]
    cover += [
        box([hole[0], front_rim, 0.038], [0, sy * (COUNTER_DEPTH - front_rim) / 2, top], counter, bevel=0)
        for sy in (-1, 1)
    ]
    cover.append(box([width, COUNTER_DEPTH - 0.05, 0.5], [0, 0.025, 0.36], front, bevel=0.001))
    cover += [
        box([0.02, COUNTER_DEPTH - 0.05, 0.25], [sx * (width / 2 - 0.01), 0.025, 0.735], front, bevel=0)
        for sx in (-1, 1)
    ]
    return ObjectMesh("counter", tuple(cover))


def kitchen_sink(rng: np.random.Generator) -> ObjectMesh:
    """Build a steel or white basin with a rim and a tap for the hole of ``sink_unit``; its rim lies at z = 0."""
    steel = (
        materials.metal(rng, brushed=True)
        if rng.random() < 0.7
        else materials.plain(rng, materials.jitter(rng, materials.COLOURS["white"]), roughness=0.15)
    )
    chrome = materials.metal(rng)
    w, d, deep = SINK_UNIT_WIDTH - 0.26, 0.34, 0.17
    wall = 0.006
    parts = [box([w, d, wall], [0, 0, -deep], steel), cylinder(0.03, 0.004, [0, 0, -deep + 0.003], chrome)]
    parts += [box([wall, d, deep], [sx * w / 2, 0, -deep / 2], steel) for sx in (-1, 1)]
    parts += [box([w, wall, deep], [0, sy * d / 2, -deep / 2], steel) for sy in (-1, 1)]
    parts += [box([0.05, d + 0.1, 0.006], [sx * (w / 2 + 0.024), 0, 0.0035], steel) for sx in (-1, 1)]
    parts += [box([w, 0.05, 0.006], [0, sy * (d / 2 + 0.024), 0.0035], steel) for sy in (-1, 1)]
    parts += tap(chrome, [0, d / 2 + 0.035, 0.004], rng.uniform(0.2, 0.34), 0.2)
    material = "metal" if steel.metallic else ""
    return ObjectMesh("sink", tuple(parts), "" if steel.metallic else "white", material)


def wall_unit(rng: np.random.Generator, front: materials.Material, width: float = 0.6) -> ObjectMesh:
    """Build a cupboard that hangs above the counter; z = 0 is its lower edge."""
    depth, height = 0.34, 0.7
    bar = materials.metal(rng)
    parts = [box([width, depth - 0.02, height], [0, 0.01, height / 2], front, bevel=0.001)]
    parts.append(box([width - 0.006, 0.02, height - 0.006], [0, -depth / 2 + 0.01, height / 2], front))
    parts += door_handle(0.14, width / 2 - 0.06, -depth / 2, 0.12, bar, upright=True)
    return ObjectMesh("cupboard", tuple(parts))
