"""Bottles, cups, bowls, wine glasses, cutlery, plates and pots."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, box, cylinder, ellipsoid, join, lathe, prism, tube
from simulation.household.object_mesh import ObjectMesh, SupportSurface


def bottle(rng: np.random.Generator) -> ObjectMesh:
    """Build a wine, water or sauce bottle with a label."""
    style = rng.choice(["wine", "water", "sauce"], p=[0.4, 0.35, 0.25])
    cap = materials.plain(rng, materials.random_colour(rng, "red", "blue", "white", "black", "green")[1])
    label = materials.patterned(
        rng,
        "picture",
        materials.random_colour(rng, "white", "red", "yellow", "blue", "green", "beige")[1],
        materials.random_colour(rng, "white", "black", "red", "blue")[1],
    )
    if style == "wine":
        radius, height = rng.uniform(0.036, 0.040), rng.uniform(0.29, 0.33)
        colour, rgb = [("green", (0.05, 0.13, 0.05)), ("brown", (0.15, 0.07, 0.02)), ("black", (0.03, 0.03, 0.03))][
            int(rng.integers(3))
        ]
        body = materials.plain(rng, rgb, roughness=0.07)
        profile = [
            (radius - 0.006, 0),
            (radius, 0.006),
            (radius, height * 0.58),
            (radius * 0.9, height * 0.66),
            (0.016, height * 0.76),
            (0.0145, height - 0.02),
            (0.017, height - 0.018),
            (0.017, height - 0.008),
            (0.015, height),
        ]
        parts = [
            lathe(profile, body),
            _band(radius + 0.0006, height * 0.17, height * 0.45, label),
            cylinder(0.0175, 0.05, [0, 0, height - 0.05], cap),
        ]
        return ObjectMesh("bottle", tuple(parts), colour, "glass")
    if style == "water":
        radius, height = rng.uniform(0.032, 0.045), rng.uniform(0.21, 0.30)
        body = materials.glass(rng, (0.82, 0.92, 0.97))
        waists = [(radius * (1 - 0.05 * (i % 2)), 0.01 + height * 0.66 * i / 8) for i in range(9)]
        profile = [(radius - 0.008, 0), *waists, (radius * 0.8, height * 0.76), (0.014, height * 0.9), (0.014, height)]
        parts = [
            lathe(profile, body),
            _band(radius + 0.0012, height * 0.28, height * 0.52, label),
            cylinder(0.0165, 0.022, [0, 0, height - 0.02], cap),
        ]
        return ObjectMesh("bottle", tuple(parts), "", "plastic")
    radius, height = rng.uniform(0.028, 0.036), rng.uniform(0.17, 0.23)
    colour, rgb = materials.random_colour(rng, "red", "yellow", "white", "brown", "green", "blue")
    body = materials.plain(rng, rgb, roughness=0.25)
    profile = [
        (radius - 0.005, 0),
        (radius, 0.008),
        (radius * 0.93, height * 0.4),
        (radius, height * 0.62),
        (radius * 0.75, height * 0.76),
        (0.015, height * 0.82),
        (0.014, height * 0.86),
    ]
    parts = [
        lathe(profile, body),
        cylinder(0.019, height * 0.16, [0, 0, height * 0.84], cap, top=0.012),
        _band(radius * 1.005, height * 0.2, height * 0.5, label),
    ]
    return ObjectMesh("bottle", tuple(parts), colour)


def _band(radius: float, low: float, high: float, material: materials.Material) -> MeshPart:
    """Build a label around a bottle, from ``low`` to ``high``."""
    return lathe([(radius - 0.001, low), (radius, low), (radius, high), (radius - 0.001, high)], material)


def cup(rng: np.random.Generator) -> ObjectMesh:
    """Build a mug with a handle, empty or with coffee or tea."""
    colour, rgb = materials.random_colour(
        rng, "white", "white", "red", "blue", "green", "yellow", "black", "orange", "gray"
    )
    glaze = materials.plain(rng, rgb, roughness=0.15)
    radius, height, wall = rng.uniform(0.037, 0.046), rng.uniform(0.082, 0.115), 0.004
    foot = radius * rng.uniform(0.72, 1.0)
    inside = materials.plain(rng, materials.COLOURS["white"], roughness=0.15) if rng.random() < 0.4 else glaze
    parts = [
        lathe(
            [
                (foot - 0.004, 0),
                (foot, 0.004),
                (radius, height * 0.45),
                (radius, height - 0.002),
                (radius - wall / 2, height),
            ],
            glaze,
        ),
        lathe(
            [
                (radius - wall / 2, height),
                (radius - wall, height - 0.002),
                (radius - wall, height * 0.45),
                (foot - wall, 0.008),
                (0, 0.007),
            ],
            inside,
        ),
    ]
    angle = np.linspace(-1.25, 1.25, 11)
    curve = np.column_stack(
        [radius - 0.007 + 0.031 * np.cos(angle), np.zeros(11), height * 0.52 + height * 0.31 * np.sin(angle)]
    )
    parts.append(tube(curve, 0.0058, glaze))
    if rng.random() < 0.5:
        drink = materials.plain(rng, (0.09, 0.045, 0.02) if rng.random() < 0.6 else (0.35, 0.13, 0.03), roughness=0.05)
        parts.append(cylinder(radius - wall - 0.0006, 0.003, [0, 0, height - 0.02], drink))
    return ObjectMesh("cup", tuple(parts), colour)


def bowl(rng: np.random.Generator) -> ObjectMesh:
    """Build a bowl, empty or with food."""
    colour, rgb = materials.random_colour(rng, "white", "white", "blue", "red", "green", "yellow", "gray", "orange")
    glaze = materials.plain(rng, rgb, roughness=0.15)
    inner = glaze if rng.random() < 0.6 else materials.plain(rng, materials.COLOURS["white"], roughness=0.15)
    radius = rng.uniform(0.065, 0.12)
    height, foot, wall = radius * rng.uniform(0.5, 0.72), radius * 0.45, 0.004
    curve = [
        (foot + (radius - foot) * np.sin(t), 0.008 + (height - 0.008) * (1 - np.cos(t)) ** 0.9)
        for t in np.linspace(0.15, np.pi / 2, 8)
    ]
    parts = [
        lathe([(foot - 0.004, 0), (foot, 0.004), *curve], glaze, segments=40),
        lathe(
            [*[(r - wall, z + (wall if i < 5 else 0.0)) for i, (r, z) in reversed(list(enumerate(curve)))], (0, 0.014)],
            inner,
            segments=40,
        ),
    ]
    if rng.random() < 0.45:
        food = materials.patterned(
            rng,
            "fruit",
            materials.random_colour(rng, "orange", "yellow", "green", "brown", "red")[1],
            materials.random_colour(rng, "brown", "beige", "green")[1],
            scale=3,
        )
        level = height * 0.72
        parts.append(
            lathe([(0, level * 0.8), (radius * 0.83, level), (radius * 0.6, level + 0.008), (0, level + 0.013)], food)
        )
    return ObjectMesh("bowl", tuple(parts), colour)


def wine_glass(rng: np.random.Generator) -> ObjectMesh:
    """Build a stemmed glass, empty or with red or white wine."""
    clear = materials.glass(rng)
    belly, height = rng.uniform(0.036, 0.044), rng.uniform(0.18, 0.23)
    rim, stem, foot = belly * rng.uniform(0.72, 0.95), height * rng.uniform(0.38, 0.48), rng.uniform(0.032, 0.037)
    cup_height = height - stem
    outside = [(belly * np.sin(t), stem + cup_height * 0.42 * (1 - np.cos(t))) for t in np.linspace(0.25, np.pi / 2, 7)]
    outside += [(belly + (rim - belly) * t**1.6, stem + cup_height * (0.42 + 0.58 * t)) for t in (0.25, 0.5, 0.75, 1.0)]
    wall = 0.0014
    inside = [(max(r - wall, 0.0), z + (wall if i == 0 else 0)) for i, (r, z) in enumerate(outside)][::-1]
    profile = [
        (foot, 0),
        (foot, 0.002),
        (0.008, 0.006),
        (0.0042, 0.015),
        (0.004, stem - 0.008),
        *outside,
        *inside,
        (0, stem + 0.004),
    ]
    parts = [lathe(profile, clear, segments=40)]
    if rng.random() < 0.55:
        red = rng.random() < 0.6
        wine = materials.plain(rng, (0.16, 0.008, 0.02) if red else (0.75, 0.62, 0.22), roughness=0.04)
        inner = [(r - 2.2 * wall, z + 0.002) for r, z in outside[1:7]]
        parts.append(lathe([(0, inner[0][1]), *inner, (0, inner[-1][1])], wine, segments=40))
    return ObjectMesh("wine glass", tuple(parts), "", "")


def _handle(length: float, steel: materials.Material) -> MeshPart:
    """Build a handle of cutlery along y, from 0 to -``length`` metres."""
    y = np.linspace(0, -length, 8)
    width = np.interp(np.linspace(0, 1, 8), [0, 0.25, 0.8, 1], [0.0035, 0.0036, 0.0085, 0.0055])
    z = 0.004 + 0.006 * np.sin(np.linspace(0, np.pi, 8))
    return tube(np.column_stack([np.zeros(8), y, z]), width, steel, segments=8, flatten=0.28)


def fork(rng: np.random.Generator) -> ObjectMesh:
    """Build a fork of steel."""
    steel = materials.metal(rng)
    handle = _handle(rng.uniform(0.12, 0.135), steel)
    y = np.linspace(0, 0.03, 4)
    neck = tube(
        np.column_stack([np.zeros(4), y, [0.004, 0.004, 0.006, 0.007]]),
        [0.0035, 0.006, 0.011, 0.0125],
        steel,
        segments=8,
        flatten=0.2,
    )
    tines = []
    for x in (-0.0095, -0.0032, 0.0032, 0.0095):
        tines.append(
            tube(
                [[x, 0.028, 0.007], [x, 0.05, 0.005], [x, 0.075, 0.010]],
                [0.0022, 0.0022, 0.0012],
                steel,
                segments=6,
                flatten=0.7,
            )
        )
    return ObjectMesh("fork", (handle, neck, join(tines)), "", "metal")


def spoon(rng: np.random.Generator) -> ObjectMesh:
    """Build a spoon of steel or wood."""
    steel = materials.metal(rng) if rng.random() < 0.85 else materials.wood(rng)
    handle = _handle(rng.uniform(0.12, 0.135), steel)
    t = np.linspace(0, np.pi / 2, 8)
    inner = [(float(np.sin(a)), float(0.0105 - 0.0085 * np.cos(a))) for a in t]
    rim = [(1.0, 0.0115), *[(r, z - 0.0014) for r, z in reversed(inner)]]
    head = lathe([(r, z) for r, z in inner] + rim, steel, segments=28)
    vertices = head.vertices * [0.02, 0.031, 1.0] + [0, 0.028, 0]
    return ObjectMesh(
        "spoon",
        (handle, MeshPart(vertices, head.faces, steel, smooth=True)),
        "",
        "wooden" if steel.texture == "wood" else "metal",
    )


def knife(rng: np.random.Generator) -> ObjectMesh:
    """Build a table knife of steel or a kitchen knife with a black or wooden handle."""
    steel = materials.metal(rng)
    kitchen = rng.random() < 0.5
    blade_length, blade_width = (rng.uniform(0.16, 0.2), 0.034) if kitchen else (rng.uniform(0.10, 0.115), 0.019)
    u = np.linspace(0, 1, 8)
    edge = np.column_stack(
        [blade_width / 2 - blade_width * 0.9 * np.clip((u - 0.45) / 0.55, 0, 1) ** 2.2, blade_length * u]
    )
    outline = np.concatenate([[[-blade_width / 2, 0]], edge, [[-blade_width / 2, blade_length * 0.97]]])
    blade = prism(outline, 0.0018, steel, bevel=0).transformed([0, 0, 0.004])
    handle_material = (
        (materials.plain(rng, (0.04, 0.04, 0.04)) if rng.random() < 0.6 else materials.wood(rng)) if kitchen else steel
    )
    length = 0.12 if kitchen else 0.1
    handle = ellipsoid(
        [0.0125 if kitchen else 0.0085, length / 2, 0.0065],
        [0, -length / 2 + 0.003, 0.0066],
        handle_material,
        squareness=0.45,
    )
    return ObjectMesh("knife", (blade, handle), "black" if kitchen and handle_material.texture == "plain" else "", "")


def plate(rng: np.random.Generator) -> ObjectMesh:
    """Build a plate."""
    colour, rgb = materials.random_colour(rng, "white", "white", "white", "blue", "gray", "beige")
    radius = rng.uniform(0.10, 0.135)
    glaze = materials.plain(rng, rgb, roughness=0.12)
    profile = [
        (0, 0),
        (radius * 0.62, 0),
        (radius * 0.66, 0.003),
        (radius, 0.019),
        (radius - 0.002, 0.022),
        (radius * 0.66, 0.0075),
        (radius * 0.6, 0.006),
        (0, 0.006),
    ]
    half = radius * 0.43
    return ObjectMesh(
        "plate", (lathe(profile, glaze, segments=40),), colour, "", (SupportSurface(0, 0, half, half, 0.0065, "plate"),)
    )


def pot(rng: np.random.Generator) -> ObjectMesh:
    """Build a saucepan with a lid."""
    steel = (
        materials.metal(rng)
        if rng.random() < 0.6
        else materials.plain(rng, materials.random_colour(rng, "red", "black", "blue")[1], roughness=0.2)
    )
    dark = materials.plain(rng, (0.03, 0.03, 0.03))
    radius, height = rng.uniform(0.085, 0.11), rng.uniform(0.1, 0.14)
    parts = [
        cylinder(radius, height, [0, 0, 0], steel),
        lathe(
            [(radius + 0.002, height), (radius, height + 0.006), (radius * 0.5, height + 0.02), (0, height + 0.024)],
            steel,
        ),
        cylinder(0.016, 0.022, [0, 0, height + 0.022], dark),
        *[box([0.05, 0.03, 0.012], [sx * (radius + 0.02), 0, height * 0.8], dark) for sx in (-1, 1)],
    ]
    return ObjectMesh("pot", tuple(parts))
