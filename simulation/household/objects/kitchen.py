"""Units and appliances of fitted kitchens."""

import numpy as np

from simulation.household.materials import COLOURS, Material, jitter, metal, painted, plain, random_colour
from simulation.household.mesh import MeshPart, ObjectMesh, SupportSurface, box, cylinder, lathe, tube
from simulation.household.objects.bathroom import tap

COUNTER_HEIGHT = 0.90
"""Metres from the floor to the top of the counter."""
COUNTER_DEPTH = 0.60
"""Metres from the wall to the front of the counter."""
SINK_UNIT_WIDTH = 0.8
"""Metres."""


def door_handle(
    width: float, x: float, y: float, z: float, material: Material, *, upright: bool = False
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
    rng: np.random.Generator, width: float, low: float, high: float, face: float, front: Material, bar: Material
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


def base_unit(rng: np.random.Generator, front: Material, counter: Material, width: float) -> ObjectMesh:
    """Build a cupboard ``width`` metres wide under a section of the counter."""
    face, bar = -COUNTER_DEPTH / 2 + 0.03, metal(rng)
    parts = [
        box(
            [width, COUNTER_DEPTH - 0.05, COUNTER_HEIGHT - 0.14],
            [0, 0.025, COUNTER_HEIGHT / 2 + 0.03],
            front,
            bevel=0.001,
        ),
        box([width, COUNTER_DEPTH - 0.12, 0.1], [0, 0.05, 0.05], plain(rng, (0.1, 0.1, 0.1)), bevel=0),
        box([width, COUNTER_DEPTH, 0.038], [0, 0, COUNTER_HEIGHT - 0.019], counter, bevel=0.003),
        *_front(rng, width, 0.11, COUNTER_HEIGHT - 0.045, face - 0.02, front, bar),
    ]
    top = SupportSurface(0, 0, width / 2 - 0.01, COUNTER_DEPTH / 2 - 0.02, COUNTER_HEIGHT)
    return ObjectMesh("counter", tuple(parts), surfaces=(top,))


def sink_unit(rng: np.random.Generator, front: Material, counter: Material) -> ObjectMesh:
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
        metal(rng, brushed=True) if rng.random() < 0.7 else plain(rng, jitter(rng, COLOURS["white"]), roughness=0.15)
    )
    chrome = metal(rng)
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


def wall_unit(rng: np.random.Generator, front: Material, width: float = 0.6) -> ObjectMesh:
    """Build a cupboard that hangs above the counter; z = 0 is its lower edge."""
    depth, height = 0.34, 0.7
    bar = metal(rng)
    parts = [box([width, depth - 0.02, height], [0, 0.01, height / 2], front, bevel=0.001)]
    parts.append(box([width - 0.006, 0.02, height - 0.006], [0, -depth / 2 + 0.01, height / 2], front))
    parts += door_handle(0.14, width / 2 - 0.06, -depth / 2, 0.12, bar, upright=True)
    return ObjectMesh("cupboard", tuple(parts))


def refrigerator(rng: np.random.Generator) -> ObjectMesh:
    """Build a refrigerator with the freezer below, above or beside it."""
    colour, rgb = (
        random_colour(rng, "white", "silver", "black") if rng.random() < 0.9 else random_colour(rng, "red", "beige")
    )
    steel = colour == "silver"
    casing = metal(rng, brushed=True) if steel else plain(rng, rgb, roughness=0.28)
    dark, bar = plain(rng, (0.08, 0.08, 0.08)), metal(rng)
    double = rng.random() < 0.25
    width, depth, height = (
        (rng.uniform(0.85, 0.92) if double else rng.uniform(0.58, 0.70)),
        rng.uniform(0.60, 0.68),
        rng.uniform(1.65, 1.9),
    )
    parts = [
        box([width, depth - 0.07, height - 0.03], [0, 0.035, height / 2 + 0.015], casing, bevel=0.008),
        box([width - 0.04, depth - 0.12, 0.03], [0, 0.02, 0.015], dark),
        box([width - 0.02, 0.012, height - 0.06], [0, -depth / 2 + 0.066, height / 2 + 0.02], dark),
    ]
    face = -depth / 2
    if double:
        for sx in (-1, 1):
            parts.append(
                box(
                    [width / 2 - 0.004, 0.06, height - 0.05],
                    [sx * width / 4, face + 0.03, height / 2 + 0.022],
                    casing,
                    bevel=0.014,
                )
            )
            parts += door_handle(0.7, sx * 0.05, face, height * 0.55, bar, upright=True)
    else:
        split = height * (rng.uniform(0.34, 0.42) if rng.random() < 0.6 else rng.uniform(0.66, 0.72))
        side = -1 if rng.random() < 0.5 else 1
        for low, high in ((0.05, split - 0.004), (split + 0.004, height - 0.003)):
            parts.append(box([width, 0.06, high - low], [0, face + 0.03, (low + high) / 2], casing, bevel=0.014))
            handle_length = min(0.45, (high - low) * 0.6)
            handle_height = high - handle_length / 2 - 0.06 if low < 0.1 else low + handle_length / 2 + 0.06
            parts += door_handle(handle_length, side * (width / 2 - 0.06), face, handle_height, bar, upright=True)
        if rng.random() < 0.4:
            for _ in range(int(rng.integers(2, 5))):
                paper = painted(rng, "white", "yellow", "pink", "blue", roughness=0.8)
                size = rng.uniform(0.05, 0.12, 2)
                parts.append(
                    box(
                        [size[0], 0.002, size[1]],
                        [rng.uniform(-0.18, 0.18), face - 0.001, rng.uniform(max(1.0, split + 0.1), height - 0.15)],
                        paper,
                    )
                )
    return ObjectMesh("refrigerator", tuple(parts), colour)


def oven(rng: np.random.Generator) -> ObjectMesh:
    """Build a range: an oven with a glass door, knobs and a gas or electric hob."""
    colour, rgb = random_colour(rng, "white", "black", "silver")
    casing = metal(rng, brushed=True) if colour == "silver" else plain(rng, rgb, roughness=0.25)
    black, window, bar = (
        plain(rng, (0.03, 0.03, 0.03), roughness=0.3),
        plain(rng, (0.015, 0.015, 0.018), roughness=0.06),
        metal(rng),
    )
    width, depth, height = 0.597, COUNTER_DEPTH + 0.01, COUNTER_HEIGHT
    face = -depth / 2
    parts = [
        box([width, depth - 0.05, height - 0.11], [0, 0.025, height / 2 + 0.04], casing),
        box([width, 0.04, 0.10], [0, face + 0.03, 0.14], casing),
        box([width - 0.05, depth - 0.1, 0.09], [0, 0.03, 0.045], black),
        box([width - 0.006, 0.045, 0.50], [0, face + 0.022, 0.46], casing, bevel=0.006),
        box([width - 0.13, 0.008, 0.29], [0, face - 0.001, 0.45], window),
        box([width, 0.05, 0.12], [0, face + 0.025, 0.79], casing if rng.random() < 0.6 else black, bevel=0.006),
        box([width, depth - 0.004, 0.012], [0, 0, height - 0.004], black if rng.random() < 0.7 else casing),
        *door_handle(0.46, 0, face - 0.001, 0.67, bar),
    ]
    knob = bar if rng.random() < 0.5 else black
    places = [-0.24, -0.16, -0.08, 0.08, 0.16, 0.24]
    parts += [
        cylinder(0.019, 0.026, [0, 0, 0], knob, top=0.016).transformed([x, face, 0.79], tilt=np.pi / 2) for x in places
    ]
    if rng.random() < 0.6:
        parts.append(box([0.09, 0.003, 0.04], [0, face - 0.001, 0.80], plain(rng, (0.1, 0.5, 0.4)).emitting(0.6)))
    gas = rng.random() < 0.5
    for x, y in ((-0.15, -0.13), (0.15, -0.13), (-0.15, 0.14), (0.15, 0.14)):
        radius = rng.uniform(0.07, 0.095)
        if gas:
            parts.append(cylinder(0.04, 0.012, [x, y, height + 0.002], black))
            for angle in (0.3, 0.3 + np.pi / 2):
                middle = np.array([x, y, height + 0.018])
                arm = np.array([np.cos(angle), np.sin(angle), 0]) * radius
                parts.append(tube([middle - arm, middle + arm], 0.005, black, segments=6))
        else:
            ring = [(radius, 0), (radius, 0.003), (radius - 0.006, 0.0035), (radius - 0.007, 0.001)]
            parts.append(
                lathe(ring, plain(rng, (0.12, 0.12, 0.12), roughness=0.35)).transformed([x, y, height + 0.001])
            )
    return ObjectMesh("oven", tuple(parts), colour)


def microwave(rng: np.random.Generator) -> ObjectMesh:
    """Build a microwave oven with a door, a display and keys."""
    colour, rgb = random_colour(rng, "white", "black", "silver")
    casing = metal(rng, brushed=True) if colour == "silver" else plain(rng, rgb, roughness=0.3)
    width, depth, height = rng.uniform(0.45, 0.53), rng.uniform(0.34, 0.40), rng.uniform(0.26, 0.30)
    face, panel = -depth / 2, 0.11
    door = width - panel - 0.01
    window, dark = plain(rng, (0.02, 0.02, 0.022), roughness=0.08), plain(rng, (0.06, 0.06, 0.065))
    grey = plain(rng, (0.7, 0.7, 0.7) if colour == "black" else (0.25, 0.25, 0.26))
    parts = [
        box([width, depth - 0.02, height - 0.012], [0, 0.01, height / 2 + 0.006], casing, bevel=0.006),
        box(
            [door, 0.02, height - 0.022],
            [-width / 2 + door / 2 + 0.004, face + 0.01, height / 2 + 0.006],
            casing if rng.random() < 0.5 else dark,
            bevel=0.004,
        ),
        box([door - 0.09, 0.004, height - 0.1], [-width / 2 + door / 2, face - 0.001, height / 2 + 0.006], window),
        box(
            [panel, 0.02, height - 0.022],
            [width / 2 - panel / 2 - 0.003, face + 0.01, height / 2 + 0.006],
            dark if colour != "white" or rng.random() < 0.4 else casing,
        ),
        box(
            [panel - 0.03, 0.003, 0.03],
            [width / 2 - panel / 2, face - 0.001, height - 0.045],
            plain(rng, (0.1, 0.6, 0.3)).emitting(0.8),
        ),
        *door_handle(height * 0.6, width / 2 - panel - 0.025, face, height / 2, metal(rng), upright=True),
    ]
    parts += [
        box([0.018, 0.004, 0.012], [width / 2 - panel / 2 + c * 0.026, face - 0.001, height - 0.09 - r * 0.022], grey)
        for c in (-1, 0, 1)
        for r in range(5)
    ]
    parts += [
        box([0.03, 0.03, 0.012], [sx * (width / 2 - 0.05), sy * (depth / 2 - 0.06), 0.006], dark)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    return ObjectMesh("microwave", tuple(parts), colour)


def toaster(rng: np.random.Generator) -> ObjectMesh:
    """Build a toaster with two slots, in half of the cases with toast in them."""
    colour, rgb = random_colour(rng, "silver", "silver", "white", "black", "red")
    casing = metal(rng) if colour == "silver" else plain(rng, rgb, roughness=0.2)
    dark = plain(rng, (0.03, 0.03, 0.03))
    width, depth, height = rng.uniform(0.26, 0.31), rng.uniform(0.16, 0.19), rng.uniform(0.17, 0.2)
    parts = [
        box([width, depth, height - 0.012], [0, 0, height / 2 + 0.006], casing, bevel=0.035),
        box([width - 0.03, depth - 0.03, 0.016], [0, 0, 0.008], dark),
        *[
            box([width * 0.7, 0.026, 0.006], [0, sy * depth * 0.18, height - 0.001], dark, bevel=0.001)
            for sy in (-1, 1)
        ],
        box([0.018, 0.045, 0.016], [width / 2 + 0.008, 0, height * 0.68], dark, bevel=0.003),
        cylinder(0.014, 0.012, [0, 0, 0], dark).transformed(
            [width / 2 * 0.5, -depth / 2, height * 0.3], tilt=np.pi / 2
        ),
        box([0.006, 0.012, height * 0.5], [width / 2 + 0.001, 0, height * 0.5], dark, bevel=0.001),
    ]
    if rng.random() < 0.5:
        crust = plain(rng, (0.55, 0.32, 0.12), roughness=0.9)
        parts += [
            box([width * 0.42, 0.014, 0.05], [0, sy * depth * 0.18, height + 0.02], crust, bevel=0.004)
            for sy in (-1, 1)
        ]
    return ObjectMesh("toaster", tuple(parts), colour)


def hood(rng: np.random.Generator) -> ObjectMesh:
    """Build an extractor hood; z = 0 is its lower edge."""
    steel = metal(rng, brushed=True)
    parts = [box([0.6, 0.45, 0.05], [0, 0, 0.025], steel), box([0.25, 0.28, 0.65], [0, 0.085, 0.375], steel)]
    return ObjectMesh("hood", tuple(parts), "silver")
