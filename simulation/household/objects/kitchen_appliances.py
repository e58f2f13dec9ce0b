"""Refrigerators, ovens, microwaves, toasters and extractor hoods."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import box, cylinder, lathe, tube
from simulation.household.object_mesh import ObjectMesh
from simulation.household.objects.kitchen_units import COUNTER_DEPTH, COUNTER_HEIGHT, door_handle


def refrigerator(rng: np.random.Generator) -> ObjectMesh:
    """Build a refrigerator with the freezer below, above or beside it."""
    colour, rgb = (
        materials.random_colour(rng, "white", "silver", "black")
        if rng.random() < 0.9
        else materials.random_colour(rng, "red", "beige")
    )
    steel = colour == "silver"
    casing = materials.metal(rng, brushed=True) if steel else materials.plain(rng, rgb, roughness=0.28)
    dark, bar = materials.plain(rng, (0.08, 0.08, 0.08)), materials.metal(rng)
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
                paper = materials.plain(
                    rng, materials.random_colour(rng, "white", "yellow", "pink", "blue")[1], roughness=0.8
                )
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
    colour, rgb = materials.random_colour(rng, "white", "black", "silver")
    casing = materials.metal(rng, brushed=True) if colour == "silver" else materials.plain(rng, rgb, roughness=0.25)
    black, window, bar = (
        materials.plain(rng, (0.03, 0.03, 0.03), roughness=0.3),
        materials.plain(rng, (0.015, 0.015, 0.018), roughness=0.06),
        materials.metal(rng),
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
        parts.append(
            box([0.09, 0.003, 0.04], [0, face - 0.001, 0.80], materials.plain(rng, (0.1, 0.5, 0.4)).emitting(0.6))
        )
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
                lathe(ring, materials.plain(rng, (0.12, 0.12, 0.12), roughness=0.35)).transformed(
                    [x, y, height + 0.001]
                )
            )
    return ObjectMesh("oven", tuple(parts), colour)


def microwave(rng: np.random.Generator) -> ObjectMesh:
    """Build a microwave oven with a door, a display and keys."""
    colour, rgb = materials.random_colour(rng, "white", "black", "silver")
    casing = materials.metal(rng, brushed=True) if colour == "silver" else materials.plain(rng, rgb, roughness=0.3)
    width, depth, height = rng.uniform(0.45, 0.53), rng.uniform(0.34, 0.40), rng.uniform(0.26, 0.30)
    face, panel = -depth / 2, 0.11
    door = width - panel - 0.01
    window, dark = materials.plain(rng, (0.02, 0.02, 0.022), roughness=0.08), materials.plain(rng, (0.06, 0.06, 0.065))
    grey = materials.plain(rng, (0.7, 0.7, 0.7) if colour == "black" else (0.25, 0.25, 0.26))
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
            materials.plain(rng, (0.1, 0.6, 0.3)).emitting(0.8),
        ),
        *door_handle(height * 0.6, width / 2 - panel - 0.025, face, height / 2, materials.metal(rng), upright=True),
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
    colour, rgb = materials.random_colour(rng, "silver", "silver", "white", "black", "red")
    casing = materials.metal(rng) if colour == "silver" else materials.plain(rng, rgb, roughness=0.2)
    dark = materials.plain(rng, (0.03, 0.03, 0.03))
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
        crust = materials.plain(rng, (0.55, 0.32, 0.12), roughness=0.9)
        parts += [
            box([width * 0.42, 0.014, 0.05], [0, sy * depth * 0.18, height + 0.02], crust, bevel=0.004)
            for sy in (-1, 1)
        ]
    return ObjectMesh("toaster", tuple(parts), colour)


def hood(rng: np.random.Generator) -> ObjectMesh:
    """Build an extractor hood; z = 0 is its lower edge."""
    steel = materials.metal(rng, brushed=True)
    parts = [box([0.6, 0.45, 0.05], [0, 0, 0.025], steel), box([0.25, 0.28, 0.65], [0, 0.085, 0.375], steel)]
    return ObjectMesh("hood", tuple(parts), "silver")
