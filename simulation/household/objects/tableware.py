"""Bottles, cups, bowls, wine glasses, cutlery, plates and pots; fruit and cakes."""

import numpy as np

from simulation.household.materials import (
    COLOURS,
    Material,
    glass,
    jitter,
    metal,
    painted,
    patterned,
    plain,
    random_colour,
    wood,
)
from simulation.household.mesh import (
    MeshPart,
    ObjectMesh,
    SupportSurface,
    box,
    cylinder,
    ellipsoid,
    join,
    lathe,
    lathe_profile,
    prism,
    tube,
)


def bottle(rng: np.random.Generator) -> ObjectMesh:
    """Build a wine, water or sauce bottle with a label."""
    style = rng.choice(["wine", "water", "sauce"], p=[0.4, 0.35, 0.25])
    cap = painted(rng, "red", "blue", "white", "black", "green")
    label = patterned(
        rng,
        "picture",
        random_colour(rng, "white", "red", "yellow", "blue", "green", "beige")[1],
        random_colour(rng, "white", "black", "red", "blue")[1],
    )
    if style == "wine":
        radius, height = rng.uniform(0.036, 0.040), rng.uniform(0.29, 0.33)
        colour, rgb = [("green", (0.05, 0.13, 0.05)), ("brown", (0.15, 0.07, 0.02)), ("black", (0.03, 0.03, 0.03))][
            int(rng.integers(3))
        ]
        body = plain(rng, rgb, roughness=0.07)
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
        body = glass(rng, (0.82, 0.92, 0.97))
        waists = [(radius * (1 - 0.05 * (i % 2)), 0.01 + height * 0.66 * i / 8) for i in range(9)]
        profile = [(radius - 0.008, 0), *waists, (radius * 0.8, height * 0.76), (0.014, height * 0.9), (0.014, height)]
        parts = [
            lathe(profile, body),
            _band(radius + 0.0012, height * 0.28, height * 0.52, label),
            cylinder(0.0165, 0.022, [0, 0, height - 0.02], cap),
        ]
        return ObjectMesh("bottle", tuple(parts), "", "plastic")
    radius, height = rng.uniform(0.028, 0.036), rng.uniform(0.17, 0.23)
    colour, rgb = random_colour(rng, "red", "yellow", "white", "brown", "green", "blue")
    body = plain(rng, rgb, roughness=0.25)
    profile = lathe_profile(
        [radius - 0.005, radius, radius * 0.93, radius, radius * 0.75, 0.015, 0.014],
        [0, 0.008, height * 0.4, height * 0.62, height * 0.76, height * 0.82, height * 0.86],
    )
    parts = [
        lathe(profile, body),
        cylinder(0.019, height * 0.16, [0, 0, height * 0.84], cap, top=0.012),
        _band(radius * 1.005, height * 0.2, height * 0.5, label),
    ]
    return ObjectMesh("bottle", tuple(parts), colour)


def _band(radius: float, low: float, high: float, material: Material) -> MeshPart:
    """Build a label around a bottle, from ``low`` to ``high``."""
    return lathe([(radius - 0.001, low), (radius, low), (radius, high), (radius - 0.001, high)], material)


def cup(rng: np.random.Generator) -> ObjectMesh:
    """Build a mug with a handle, empty or with coffee or tea."""
    colour, rgb = random_colour(rng, "white", "white", "red", "blue", "green", "yellow", "black", "orange", "gray")
    glaze = plain(rng, rgb, roughness=0.15)
    radius, height, wall = rng.uniform(0.037, 0.046), rng.uniform(0.082, 0.115), 0.004
    foot = radius * rng.uniform(0.72, 1.0)
    inside = plain(rng, COLOURS["white"], roughness=0.15) if rng.random() < 0.4 else glaze
    parts = [
        lathe(
            lathe_profile(
                [foot - 0.004, foot, radius, radius, radius - wall / 2],
                [0, 0.004, height * 0.45, height - 0.002, height],
            ),
            glaze,
        ),
        lathe(
            lathe_profile(
                [radius - wall / 2, radius - wall, radius - wall, foot - wall, 0],
                [height, height - 0.002, height * 0.45, 0.008, 0.007],
            ),
            inside,
        ),
    ]
    angle = np.linspace(-1.25, 1.25, 11)
    curve = np.column_stack(
        [radius - 0.007 + 0.031 * np.cos(angle), np.zeros(11), height * 0.52 + height * 0.31 * np.sin(angle)]
    )
    parts.append(tube(curve, 0.0058, glaze))
    if rng.random() < 0.5:
        drink = plain(rng, (0.09, 0.045, 0.02) if rng.random() < 0.6 else (0.35, 0.13, 0.03), roughness=0.05)
        parts.append(cylinder(radius - wall - 0.0006, 0.003, [0, 0, height - 0.02], drink))
    return ObjectMesh("cup", tuple(parts), colour)


def bowl(rng: np.random.Generator) -> ObjectMesh:
    """Build a bowl, empty or with food."""
    colour, rgb = random_colour(rng, "white", "white", "blue", "red", "green", "yellow", "gray", "orange")
    glaze = plain(rng, rgb, roughness=0.15)
    inner = glaze if rng.random() < 0.6 else plain(rng, COLOURS["white"], roughness=0.15)
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
        food = patterned(
            rng,
            "fruit",
            random_colour(rng, "orange", "yellow", "green", "brown", "red")[1],
            random_colour(rng, "brown", "beige", "green")[1],
            scale=3,
        )
        level = height * 0.72
        parts.append(
            lathe([(0, level * 0.8), (radius * 0.83, level), (radius * 0.6, level + 0.008), (0, level + 0.013)], food)
        )
    return ObjectMesh("bowl", tuple(parts), colour)


def wine_glass(rng: np.random.Generator) -> ObjectMesh:
    """Build a stemmed glass, empty or with red or white wine."""
    clear = glass(rng)
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
        wine = plain(rng, (0.16, 0.008, 0.02) if red else (0.75, 0.62, 0.22), roughness=0.04)
        inner = [(r - 2.2 * wall, z + 0.002) for r, z in outside[1:7]]
        parts.append(lathe([(0, inner[0][1]), *inner, (0, inner[-1][1])], wine, segments=40))
    return ObjectMesh("wine glass", tuple(parts), "", "")


def _handle(length: float, steel: Material) -> MeshPart:
    """Build a handle of cutlery along y, from 0 to -``length`` metres."""
    y = np.linspace(0, -length, 8)
    width = np.interp(np.linspace(0, 1, 8), [0, 0.25, 0.8, 1], [0.0035, 0.0036, 0.0085, 0.0055])
    z = 0.004 + 0.006 * np.sin(np.linspace(0, np.pi, 8))
    return tube(np.column_stack([np.zeros(8), y, z]), width, steel, segments=8, flatten=0.28)


def fork(rng: np.random.Generator) -> ObjectMesh:
    """Build a fork of steel."""
    steel = metal(rng)
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
    steel = metal(rng) if rng.random() < 0.85 else wood(rng)
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
    steel = metal(rng)
    kitchen = rng.random() < 0.5
    blade_length, blade_width = (rng.uniform(0.16, 0.2), 0.034) if kitchen else (rng.uniform(0.10, 0.115), 0.019)
    u = np.linspace(0, 1, 8)
    edge = np.column_stack(
        [blade_width / 2 - blade_width * 0.9 * np.clip((u - 0.45) / 0.55, 0, 1) ** 2.2, blade_length * u]
    )
    outline = np.concatenate([[[-blade_width / 2, 0]], edge, [[-blade_width / 2, blade_length * 0.97]]])
    blade = prism(outline, 0.0018, steel, bevel=0).transformed([0, 0, 0.004])
    handle_material = (plain(rng, (0.04, 0.04, 0.04)) if rng.random() < 0.6 else wood(rng)) if kitchen else steel
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
    colour, rgb = random_colour(rng, "white", "white", "white", "blue", "gray", "beige")
    radius = rng.uniform(0.10, 0.135)
    glaze = plain(rng, rgb, roughness=0.12)
    profile = lathe_profile(
        [0, radius * 0.62, radius * 0.66, radius, radius - 0.002, radius * 0.66, radius * 0.6, 0],
        [0, 0, 0.003, 0.019, 0.022, 0.0075, 0.006, 0.006],
    )
    half = radius * 0.43
    return ObjectMesh(
        "plate", (lathe(profile, glaze, segments=40),), colour, "", (SupportSurface(0, 0, half, half, 0.0065, "plate"),)
    )


def pot(rng: np.random.Generator) -> ObjectMesh:
    """Build a saucepan with a lid."""
    steel = metal(rng) if rng.random() < 0.6 else painted(rng, "red", "black", "blue", roughness=0.2)
    dark = plain(rng, (0.03, 0.03, 0.03))
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


def banana(rng: np.random.Generator) -> ObjectMesh:
    """Build a banana or a bunch of up to five that lies on its side."""
    count = int(rng.choice([1, 2, 3, 4, 5], p=[0.25, 0.2, 0.25, 0.2, 0.1]))
    ripe = jitter(rng, (0.90, 0.72, 0.10))
    skin = patterned(rng, "fruit", ripe, (0.35, 0.22, 0.06), roughness=0.5)
    tip = plain(rng, (0.20, 0.13, 0.05), roughness=0.8)
    length, thick, bend = rng.uniform(0.16, 0.2), rng.uniform(0.0155, 0.019), rng.uniform(1.1, 1.5)
    parts = []
    for i in range(count):
        angles = np.linspace(-bend / 2, bend / 2, 14)
        radius = length / bend
        curve = np.column_stack([radius * np.sin(angles), radius * (1 - np.cos(angles)), np.zeros(14)])
        widths = thick * np.interp(
            np.linspace(0, 1, 14), [0, 0.08, 0.2, 0.5, 0.8, 0.93, 1], [0.28, 0.33, 0.78, 1.0, 0.85, 0.42, 0.26]
        )
        body = tube(curve, widths, skin, segments=7)
        end = tube(curve[-2:] + np.array([0.001, 0.001, 0]), thick * 0.33, tip, segments=7)
        stem = tube([curve[0], curve[0] - [0.022, -0.009, 0]], [thick * 0.36, thick * 0.3], skin, segments=7)
        # The bananas of a bunch fan out from the stem.
        turn = (i - (count - 1) / 2) * 0.24
        for part in (body, end, stem):
            hinged = MeshPart(part.vertices - curve[0], part.faces, part.material, smooth=True)
            parts.append(hinged.transformed([0, 0, thick * 1.02 + 0.012 * (i % 2)], turn=turn))
    return ObjectMesh("banana", tuple(parts), "yellow")


def apple(rng: np.random.Generator) -> ObjectMesh:
    """Build a red or green apple with a stem."""
    name, rgb = [("red", (0.55, 0.05, 0.05)), ("green", (0.42, 0.58, 0.12)), ("red", (0.62, 0.10, 0.08))][
        int(rng.integers(3))
    ]
    skin = patterned(
        rng, "fruit", jitter(rng, rgb), (0.75, 0.55, 0.18) if name == "red" else (0.55, 0.65, 0.25), roughness=0.25
    )
    radius = rng.uniform(0.034, 0.042)
    t = np.linspace(0.0, np.pi, 15)
    profile = [
        (
            radius * np.sin(a) * (1.06 - 0.1 * (a < 1)),
            radius * (0.92 - 0.9 * np.cos(a) - 0.28 * np.exp(-((np.pi - a) ** 2) * 7) + 0.12 * np.exp(-(a**2) * 9)),
        )
        for a in t
    ]
    low = min(z for _, z in profile)
    body = lathe([(max(r, 0.0), z - low) for r, z in profile], skin)
    top = profile[-1][1] - low
    stem = tube(
        [[0, 0, top - 0.004], [0.002, 0, top + 0.01], [0.006, 0.001, top + 0.02]],
        0.0014,
        plain(rng, (0.2, 0.13, 0.06)),
        segments=6,
    )
    return ObjectMesh("apple", (body, stem), name)


def orange(rng: np.random.Generator) -> ObjectMesh:
    """Build an orange."""
    skin = patterned(rng, "fruit", jitter(rng, (0.92, 0.42, 0.04)), (0.95, 0.52, 0.10), roughness=0.4, scale=0.35)
    radius = rng.uniform(0.036, 0.044)
    navel = cylinder(0.004, 0.0015, [0, 0, 2 * radius * 0.96 - 0.0012], plain(rng, (0.25, 0.3, 0.1)))
    return ObjectMesh(
        "orange", (ellipsoid([radius, radius, radius * 0.96], [0, 0, radius * 0.96], skin), navel), "orange"
    )


def cake(rng: np.random.Generator) -> ObjectMesh:
    """Build a round layered cake on a plate, whole or with slices missing, decorated with berries, candles or icing."""
    kind = rng.choice(["chocolate", "cream", "pink"])
    icing_rgb = {"chocolate": (0.17, 0.08, 0.04), "cream": (0.93, 0.89, 0.79), "pink": (0.90, 0.58, 0.64)}[kind]
    colour = {"chocolate": "chocolate", "cream": "white", "pink": "pink"}[kind]
    icing = plain(rng, jitter(rng, icing_rgb, 0.02), roughness=0.4)
    crumb = patterned(
        rng,
        "fruit",
        (0.30, 0.16, 0.07) if kind == "chocolate" else (0.80, 0.60, 0.30),
        (0.9, 0.8, 0.6),
        roughness=0.9,
        scale=2,
    )
    radius, height = rng.uniform(0.09, 0.12), rng.uniform(0.07, 0.1)
    dish = plate(rng)
    scale = radius * 1.25 / (dish.size[0] / 2)
    stand = MeshPart(
        dish.parts[0].vertices * [scale, scale, 1], dish.parts[0].faces, dish.parts[0].material, smooth=True
    )
    missing_angle = rng.uniform(0.5, 1.3) if rng.random() < 0.55 else 0.0
    angles = np.linspace(missing_angle, 2 * np.pi, 48, endpoint=missing_angle > 0)
    rim = np.column_stack([np.cos(angles), np.sin(angles)])
    centre = np.zeros((1, 2))

    def slab(r: float, low: float, high: float, material: Material) -> MeshPart:
        outline = np.concatenate([rim * r, centre]) if missing_angle else rim * r
        return prism(outline, high - low, material, bevel=0.002).transformed([0, 0, low])

    base = 0.0085
    layers = 3
    parts = [stand]
    for i in range(layers):
        low = base + height * i / layers
        parts.append(slab(radius - 0.002, low, low + height / layers * 0.8, crumb if missing_angle else icing))
        parts.append(slab(radius - 0.003, low + height / layers * 0.8, low + height / layers, icing))
    parts.append(slab(radius, base + height, base + height + 0.007, icing))
    shell_path = np.column_stack([rim * (radius - 0.0005), np.full(len(rim), base + 0.002)])
    parts.append(_wall(shell_path, height, icing, closed=not missing_angle))
    berry = plain(rng, (0.62, 0.03, 0.05), roughness=0.2)
    top = base + height + 0.007
    decoration = rng.choice(["berries", "candles", "none"], p=[0.55, 0.25, 0.2])
    places = np.linspace(missing_angle + 0.2, 2 * np.pi - 0.2, 9)
    for a in places if decoration == "berries" else ():
        x, y = radius * 0.78 * np.cos(a), radius * 0.78 * np.sin(a)
        parts.append(ellipsoid([0.011, 0.011, 0.012], [x, y, top + 0.009], berry, segments=12))
    for a in places[::2] if decoration == "candles" else ():
        x, y = radius * 0.6 * np.cos(a), radius * 0.6 * np.sin(a)
        stick = painted(rng, "white", "red", "blue", "yellow", "pink")
        parts += [
            cylinder(0.003, 0.06, [x, y, top], stick),
            ellipsoid(
                [0.004, 0.004, 0.009], [x, y, top + 0.07], plain(rng, (1.0, 0.75, 0.3)).emitting(25), segments=10
            ),
        ]
    for _ in range(8 if decoration == "none" else 0):
        a, r = rng.uniform(missing_angle + 0.2, 2 * np.pi - 0.2), radius * rng.uniform(0.2, 0.85)
        parts.append(
            lathe([(0.009, 0), (0.007, 0.006), (0, 0.013)], icing, segments=10).transformed(
                [r * np.cos(a), r * np.sin(a), top]
            )
        )
    return ObjectMesh("cake", tuple(parts), colour)


def _wall(path: np.ndarray, height: float, material: Material, *, closed: bool) -> MeshPart:
    """Build an upright strip of ``height`` metres along a path (n, 3)."""
    n = len(path)
    vertices = np.concatenate([path, path + np.array([0, 0, height])])
    faces = tuple((i, (i + 1) % n, n + (i + 1) % n, n + i) for i in range(n if closed else n - 1))
    return MeshPart(vertices, faces, material, smooth=True)
