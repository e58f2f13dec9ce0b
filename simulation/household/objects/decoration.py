"""Lamps, pictures, rugs, vases, books and house plants."""

import numpy as np

from simulation.household.materials import Material, fabric, jitter, painted, patterned, plain, random_colour, wood
from simulation.household.mesh import (
    MeshPart,
    ObjectMesh,
    box,
    cylinder,
    ellipsoid,
    join,
    lathe,
    lathe_profile,
    sheet,
    tube,
)

_CLOTH_COLOURS = ("white", "black", "gray", "brown", "red", "blue", "green", "beige")


def table_lamp(rng: np.random.Generator, *, lit: bool = False) -> ObjectMesh:
    """Build a lamp with a cloth shade; the bulb and the shade emit light if ``lit``."""
    foot = wood(rng) if rng.random() < 0.5 else painted(rng, "white", "black", "blue", "gray", roughness=0.2)
    shade_rgb = random_colour(rng, "white", "beige", "white", "gray")[1]
    height, radius = rng.uniform(0.28, 0.4), rng.uniform(0.1, 0.15)
    shade = fabric(rng, shade_rgb)
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
            plain(rng, (1.0, 0.86, 0.66)).emitting(130.0 if lit else 0.0),
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
    frame = wood(rng) if rng.random() < 0.5 else painted(rng, "black", "white")
    art = patterned(
        rng,
        "view" if rng.random() < 0.4 else "picture",
        random_colour(rng, "blue", "orange", "green", "red", "beige")[1],
        random_colour(rng, "white", "yellow", "blue", "black", "pink")[1],
        roughness=0.5,
    )
    mount = rng.uniform(0.0, 0.07)
    parts = [
        box([width, 0.022, height], [0, 0, height / 2], frame),
        box([width - 0.04, 0.004, height - 0.04], [0, -0.011, height / 2], plain(rng, (0.92, 0.91, 0.88)), bevel=0),
        box([width - 0.05 - mount, 0.004, height - 0.05 - mount], [0, -0.012, height / 2], art, bevel=0),
    ]
    return ObjectMesh("picture", tuple(parts))


def rug(rng: np.random.Generator) -> ObjectMesh:
    """Build a plain or striped rug."""
    width, depth = rng.uniform(1.6, 2.2), rng.uniform(1.1, 1.5)
    colour, rgb = random_colour(rng, *_CLOTH_COLOURS)
    if rng.random() < 0.6:
        cloth, colour = (
            patterned(
                rng, "stripes", rgb, random_colour(rng, *_CLOTH_COLOURS)[1], roughness=0.95, scale=rng.uniform(0.8, 2)
            ),
            "",
        )
    else:
        cloth = fabric(rng, rgb, scale=2)
    return ObjectMesh("rug", (box([width, depth, 0.01], [0, 0, 0.005], cloth, bevel=0.003),), colour)


def vase(rng: np.random.Generator) -> ObjectMesh:
    """Build a vase, an object of COCO that ACVR has no class for."""
    glaze = painted(rng, "white", "blue", "black", "green", "red", roughness=0.15)
    radius, height = rng.uniform(0.045, 0.075), rng.uniform(0.16, 0.28)
    profile = lathe_profile(
        [radius * 0.6, radius * 0.65, radius, radius * 0.5, radius * 0.62, radius * 0.55, radius * 0.4, 0],
        [0, 0.005, height * 0.4, height * 0.8, height, height, height * 0.8, height * 0.6],
    )
    return ObjectMesh("vase", (lathe(profile, glaze),))


def book(rng: np.random.Generator) -> ObjectMesh:
    """Build a closed book that stands upright with its spine towards -y."""
    height, depth, thickness = rng.uniform(0.18, 0.27), rng.uniform(0.13, 0.18), rng.uniform(0.016, 0.045)
    parts, colour = _book_parts(rng, height, depth, thickness)
    return ObjectMesh("book", tuple(parts), colour)


def _book_parts(rng: np.random.Generator, height: float, depth: float, thickness: float) -> tuple[list[MeshPart], str]:
    """Build the parts of an upright closed book, ``thickness`` along x; return them with the name of its colour."""
    colour, rgb = random_colour(rng, "red", "blue", "green", "black", "white", "yellow", "brown", "orange", "gray")
    cover = plain(rng, rgb, roughness=0.45)
    paper = patterned(rng, "stripes", (0.88, 0.85, 0.76), (0.78, 0.74, 0.64), roughness=0.9, scale=0.02)
    title = painted(rng, "white", "yellow", "black")
    cover_thickness = 0.0025
    parts = [
        box([thickness - 2 * cover_thickness, depth - 0.006, height - 0.006], [0, 0, height / 2], paper, bevel=0),
        *[
            box(
                [cover_thickness, depth, height],
                [sx * (thickness - cover_thickness) / 2, 0, height / 2],
                cover,
                bevel=0.0008,
            )
            for sx in (-1, 1)
        ],
        box([thickness, cover_thickness, height], [0, -depth / 2, height / 2], cover, bevel=0.001),
        box(
            [thickness * 0.45, 0.001, height * 0.4], [0, -depth / 2 - cover_thickness / 2, height * 0.6], title, bevel=0
        ),
        *[
            box([0.001, depth * 0.6, height * 0.16], [sx * thickness / 2, 0, height * 0.7], title, bevel=0)
            for sx in (-1, 1)
        ],
    ]
    return parts, colour


def lying_book(rng: np.random.Generator) -> ObjectMesh:
    """Build a closed book that lies flat or an open one."""
    return _open_book(rng) if rng.random() < 0.25 else closed_lying_book(rng)


def closed_lying_book(rng: np.random.Generator) -> ObjectMesh:
    """Build a closed book that lies flat."""
    height, depth, thickness = rng.uniform(0.19, 0.27), rng.uniform(0.14, 0.19), rng.uniform(0.016, 0.04)
    parts, colour = _book_parts(rng, height, depth, thickness)
    # Permuting the axes turns the cover upwards.
    lying = [
        MeshPart(p.vertices[:, [1, 2, 0]] + [0, -height / 2, thickness / 2], p.faces, p.material, p.smooth, p.bevel)
        for p in parts
    ]
    return ObjectMesh("book", tuple(lying), colour)


def _open_book(rng: np.random.Generator) -> ObjectMesh:
    """Build an open book with lines of text."""
    height, depth = rng.uniform(0.2, 0.26), rng.uniform(0.14, 0.18)
    paper = plain(rng, (0.90, 0.88, 0.82), roughness=0.9)
    ink = plain(rng, (0.35, 0.35, 0.35), roughness=0.9)
    rgb = random_colour(rng, "red", "blue", "green", "black", "brown")[1]
    parts = [box([2 * depth + 0.006, height + 0.006, 0.002], [0, 0, 0.001], plain(rng, rgb), bevel=0)]
    u = np.linspace(0, 1, 9)
    lines = []
    for side in (-1, 1):
        bulge = 0.006 + 0.014 * np.sin(np.pi * np.clip(u * 0.9 + 0.03, 0, 1)) ** 0.8
        grid = np.stack(
            [
                np.stack([side * u * depth, np.full(9, y), bulge], axis=1)
                for y in np.linspace(-height / 2, height / 2, 2)
            ],
            axis=1,
        )
        parts.append(sheet(grid if side < 0 else grid[:, ::-1], paper))
        for row in range(12):
            y = height * (0.4 - 0.07 * row)
            length = depth * (0.7 if rng.random() < 0.85 else 0.4)
            lines.append(box([length, 0.004, 0.0006], [side * depth * 0.5, y, 0.0206], ink, bevel=0))
    parts.append(join(lines))
    # Captions use the word in the place of a colour: "an open book".
    return ObjectMesh("book", tuple(parts), "open")


def paper_stack(rng: np.random.Generator) -> ObjectMesh:
    """Build a stack of loose sheets, an object without a label."""
    sheets = [
        box(
            [0.21, 0.297, 0.001], [0, 0, 0.0006 + 0.0012 * i], plain(rng, (0.92, 0.92, 0.90), roughness=0.9), bevel=0
        ).transformed(turn=rng.normal(0, 0.06))
        for i in range(int(rng.integers(1, 6)))
    ]
    return ObjectMesh("paper", tuple(sheets), "white")


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
    rgb = random_colour(rng, "white", "gray", "black", "blue", "yellow")[1]
    clay = rng.random() < 0.4
    pot = plain(rng, jitter(rng, (0.62, 0.30, 0.18)), roughness=0.8) if clay else plain(rng, rgb, roughness=0.3)
    height = radius * rng.uniform(1.5, 2.0)
    rim = radius * 1.06 if clay else radius
    profile = lathe_profile(
        [radius * 0.68, radius * 0.72, radius, rim, rim, radius * 0.9, radius * 0.86, 0],
        [0, 0.003, height * 0.82, height * 0.82, height, height, height * 0.86, height * 0.86],
    )
    parts = [
        lathe(profile, pot),
        cylinder(
            radius * 0.86,
            0.004,
            [0, 0, height * 0.86],
            patterned(rng, "fruit", (0.13, 0.08, 0.05), (0.05, 0.03, 0.02), roughness=1.0),
        ),
    ]
    green = patterned(rng, "foliage", jitter(rng, (0.13, 0.36, 0.10), 0.06), (0.30, 0.50, 0.16), roughness=0.45)
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


def _leaf(length: float, width: float, droop: float, green: Material, *, upright: bool = False) -> MeshPart:
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
