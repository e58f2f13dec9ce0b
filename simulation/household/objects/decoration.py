"""Lamps, pictures, rugs and vases."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import box, ellipsoid, lathe
from simulation.household.object_mesh import ObjectMesh

_CLOTH_COLOURS = ("white", "black", "gray", "brown", "red", "blue", "green", "beige")


def table_lamp(rng: np.random.Generator, *, lit: bool = False) -> ObjectMesh:
    """Build a lamp with a cloth shade; the bulb and the shade emit light if ``lit``."""
    foot = (
        materials.wood(rng)
        if rng.random() < 0.5
        else materials.plain(rng, materials.random_colour(rng, "white", "black", "blue", "gray")[1], roughness=0.2)
    )
    shade_rgb = materials.random_colour(rng, "white", "beige", "white", "gray")[1]
    height, radius = rng.uniform(0.28, 0.4), rng.uniform(0.1, 0.15)
    shade = materials.fabric(rng, shade_rgb)
    low, high = height * 0.58, height
    profile = [(radius, low), (radius * 0.68, high), (radius * 0.68 - 0.002, high), (radius - 0.002, low)]
    parts = [
        lathe(
            [(0.065, 0), (0.065, 0.012), (0.02, 0.03), (0.03, height * 0.25), (0.012, height * 0.45), (0.008, low)],
            foot,
        ),
        lathe([*profile, profile[0]], shade.emitting(2.2) if lit else shade),
        ellipsoid(
            [0.025, 0.025, 0.035],
            [0, 0, low + 0.06],
            materials.plain(rng, (1.0, 0.86, 0.66)).emitting(130.0 if lit else 0.0),
            segments=12,
        ),
    ]
    return ObjectMesh("lamp", tuple(parts))


def lit_table_lamp(rng: np.random.Generator) -> ObjectMesh:
    """Build a table lamp that is switched on."""
    return table_lamp(rng, lit=True)


def picture(rng: np.random.Generator) -> ObjectMesh:
    """Build a framed picture for a wall; z = 0 is its lower edge."""
    width, height = rng.uniform(0.35, 0.9), rng.uniform(0.35, 0.7)
    frame = (
        materials.wood(rng)
        if rng.random() < 0.5
        else materials.plain(rng, materials.random_colour(rng, "black", "white")[1])
    )
    art = materials.patterned(
        rng,
        "view" if rng.random() < 0.4 else "picture",
        materials.random_colour(rng, "blue", "orange", "green", "red", "beige")[1],
        materials.random_colour(rng, "white", "yellow", "blue", "black", "pink")[1],
        roughness=0.5,
    )
    mount = rng.uniform(0.0, 0.07)
    parts = [
        box([width, 0.022, height], [0, 0, height / 2], frame),
        box(
            [width - 0.04, 0.004, height - 0.04],
            [0, -0.011, height / 2],
            materials.plain(rng, (0.92, 0.91, 0.88)),
            bevel=0,
        ),
        box([width - 0.05 - mount, 0.004, height - 0.05 - mount], [0, -0.012, height / 2], art, bevel=0),
    ]
    return ObjectMesh("picture", tuple(parts))


def rug(rng: np.random.Generator) -> ObjectMesh:
    """Build a plain or striped rug."""
    width, depth = rng.uniform(1.6, 2.2), rng.uniform(1.1, 1.5)
    colour, rgb = materials.random_colour(rng, *_CLOTH_COLOURS)
    if rng.random() < 0.6:
        cloth, colour = (
            materials.patterned(
                rng,
                "stripes",
                rgb,
                materials.random_colour(rng, *_CLOTH_COLOURS)[1],
                roughness=0.95,
                scale=rng.uniform(0.8, 2),
            ),
            "",
        )
    else:
        cloth = materials.fabric(rng, rgb, scale=2)
    return ObjectMesh("rug", (box([width, depth, 0.01], [0, 0, 0.005], cloth, bevel=0.003),), colour)


def vase(rng: np.random.Generator) -> ObjectMesh:
    """Build a vase, an object of COCO that ACVR has no class for."""
    glaze = materials.plain(
        rng, materials.random_colour(rng, "white", "blue", "black", "green", "red")[1], roughness=0.15
    )
    radius, height = rng.uniform(0.045, 0.075), rng.uniform(0.16, 0.28)
    profile = [
        (radius * 0.6, 0),
        (radius * 0.65, 0.005),
        (radius, height * 0.4),
        (radius * 0.5, height * 0.8),
        (radius * 0.62, height),
        (radius * 0.55, height),
        (radius * 0.4, height * 0.8),
        (0, height * 0.6),
    ]
    return ObjectMesh("vase", (lathe(profile, glaze),))
