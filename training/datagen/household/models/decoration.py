"""Plants, clocks, books, lamps, pictures, rugs."""

import numpy as np

from training.datagen.household import materials as m
from training.datagen.household.mesh import Part, box, cylinder, ellipsoid, joined, lathe, sheet, tube
from training.datagen.household.shape import Shape

_CLOTH = ("white", "black", "gray", "brown", "red", "blue", "green", "beige")


def potted_plant(rng: np.random.Generator) -> Shape:
    """A house plant for a sill or a table."""
    return _plant(rng, rng.uniform(0.055, 0.085), rng.uniform(2.8, 4.2))


def sill_plant(rng: np.random.Generator) -> Shape:
    """A small one for a narrow sill or a shelf."""
    return _plant(rng, rng.uniform(0.042, 0.052), rng.uniform(1.7, 2.1))


def floor_plant(rng: np.random.Generator) -> Shape:
    """A large plant that stands on the floor."""
    return _plant(rng, rng.uniform(0.13, 0.18), rng.uniform(2.8, 4.2))


def _plant(rng: np.random.Generator, radius: float, spread: float) -> Shape:
    rgb = m.coloured(rng, "white", "gray", "black", "blue", "yellow")[1]
    clay = rng.random() < 0.4
    pot = m.plain(rng, m.jitter(rng, (0.62, 0.30, 0.18)), roughness=0.8) if clay else m.plain(rng, rgb, roughness=0.3)
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
            m.patterned(rng, "fruit", (0.13, 0.08, 0.05), (0.05, 0.03, 0.02), roughness=1.0),
        ),
    ]
    green = m.patterned(rng, "foliage", m.jitter(rng, (0.13, 0.36, 0.10), 0.06), (0.30, 0.50, 0.16), roughness=0.45)
    style = rng.choice(["blades", "bush", "broad"])
    size = radius * spread
    base = height * 0.86
    leaves = []
    if style == "blades":
        for _ in range(int(rng.integers(14, 26))):
            lean, long = rng.uniform(0.1, 0.55), size * rng.uniform(0.7, 1.25)
            leaves.append(
                _leaf(long, long * 0.07 + 0.006, 0.4 + lean, green, upright=True).moved(
                    [0, 0, base], turn=rng.uniform(0, 6.28)
                )
            )
    else:
        stems = int(rng.integers(9, 15)) if style == "bush" else int(rng.integers(6, 10))
        stalks = []
        for _ in range(stems):
            turn, out = rng.uniform(0, 6.28), rng.uniform(0.1, 0.65)
            long = size * rng.uniform(0.4, 0.95)
            tip = np.array([np.cos(turn) * np.sin(out), np.sin(turn) * np.sin(out), np.cos(out)]) * long + [0, 0, base]
            mid = np.array([0, 0, base]) * 0.45 + tip * 0.55 + [0, 0, long * 0.08]
            stalks.append(tube(np.stack([[0, 0, base], mid, tip]), radius * 0.03 + 0.0012, green, segments=5))
            places = np.linspace(0.35, 1.0, int(rng.integers(5, 8))) if style == "bush" else [1.0]
            for t in places:
                at = np.array([0, 0, base]) * (1 - t) + tip * t
                leaf_long = size * (rng.uniform(0.2, 0.32) if style == "bush" else rng.uniform(0.45, 0.65))
                wide = leaf_long * (0.42 if style == "bush" else 0.5)
                leaves.append(
                    _leaf(leaf_long, wide, rng.uniform(0.3, 1.2), green).moved(
                        at, turn=turn + rng.normal(0, 1.1 if style == "bush" else 0.4)
                    )
                )
        parts.append(joined(stalks))
    parts.append(joined(leaves))
    return Shape("potted plant", tuple(parts), "green")


def _leaf(length: float, width: float, droop: float, green: m.Material, *, upright: bool = False) -> Part:
    """A pointed leaf that starts at the origin, grows along x and bends down by ``droop`` radians."""
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


def wall_clock(rng: np.random.Generator) -> Shape:
    """A round clock with hands, hour marks and a rim; its face looks along -y, its centre is at half its height."""
    radius = rng.uniform(0.12, 0.18)
    return _clock(rng, radius, 0.035)


def table_clock(rng: np.random.Generator) -> Shape:
    """A small alarm clock on two feet."""
    face = _clock(rng, rng.uniform(0.045, 0.06), 0.045)
    dark = m.plain(rng, (0.05, 0.05, 0.05))
    lifted = [part.moved([0, 0, 0.012]) for part in face.parts]
    feet = [tube([[sx * 0.03, 0.01, 0.002], [sx * 0.022, 0.01, 0.02]], 0.005, dark) for sx in (-1, 1)]
    return Shape("clock", (*lifted, *feet), face.colour)


def _clock(rng: np.random.Generator, radius: float, depth: float) -> Shape:
    colour, rgb = m.coloured(rng, "black", "white", "silver", "red", "brown")
    rim = m.metal(rng) if colour == "silver" else m.plain(rng, rgb, roughness=0.3)
    white = m.plain(rng, (0.93, 0.92, 0.88), roughness=0.5)
    ink = m.plain(rng, (0.02, 0.02, 0.02))

    def facing(part: Part, forward: float) -> Part:
        """From lying on its back to standing, its face towards -y."""
        return part.moved([0, forward, radius * 1.08], tilt=np.pi / 2)

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
        marks.append(box(size, [0, 0, 0], ink, bevel=0).moved(centre, turn=angle))
    parts.append(facing(joined(marks), front))
    minute, hour_angle = rng.uniform(0, 2 * np.pi, 2)
    for angle, long, wide, lift in ((minute, 0.72, 0.03, 0.002), (hour_angle, 0.48, 0.05, 0.004)):
        hand = box([radius * wide, radius * long, 0.001], [0, radius * long * 0.42, lift], ink, bevel=0).moved(
            turn=angle
        )
        parts.append(facing(hand, front))
    return Shape("clock", tuple(parts), colour)


def book(rng: np.random.Generator) -> Shape:
    """A closed book that stands upright, its spine towards -y."""
    height, deep, thick = rng.uniform(0.18, 0.27), rng.uniform(0.13, 0.18), rng.uniform(0.016, 0.045)
    parts, colour = _book_parts(rng, height, deep, thick)
    return Shape("book", tuple(parts), colour)


def _book_parts(rng: np.random.Generator, height: float, deep: float, thick: float) -> tuple[list[Part], str]:
    colour, rgb = m.coloured(rng, "red", "blue", "green", "black", "white", "yellow", "brown", "orange", "gray")
    cover = m.plain(rng, rgb, roughness=0.45)
    paper = m.patterned(rng, "stripes", (0.88, 0.85, 0.76), (0.78, 0.74, 0.64), roughness=0.9, scale=0.02)
    title = m.plain(rng, m.coloured(rng, "white", "yellow", "black")[1])
    c = 0.0025
    parts = [
        box([thick - 2 * c, deep - 0.006, height - 0.006], [0, 0, height / 2], paper, bevel=0),
        *[box([c, deep, height], [sx * (thick - c) / 2, 0, height / 2], cover, bevel=0.0008) for sx in (-1, 1)],
        box([thick, c, height], [0, -deep / 2, height / 2], cover, bevel=0.001),
        box([thick * 0.45, 0.001, height * 0.4], [0, -deep / 2 - c / 2, height * 0.6], title, bevel=0),
        *[box([0.001, deep * 0.6, height * 0.16], [sx * thick / 2, 0, height * 0.7], title, bevel=0) for sx in (-1, 1)],
    ]
    return parts, colour


def lying_book(rng: np.random.Generator) -> Shape:
    """A closed book that lies on its back, or an open one."""
    return _open_book(rng) if rng.random() < 0.25 else closed_lying_book(rng)


def closed_lying_book(rng: np.random.Generator) -> Shape:
    height, deep, thick = rng.uniform(0.19, 0.27), rng.uniform(0.14, 0.19), rng.uniform(0.016, 0.04)
    parts, colour = _book_parts(rng, height, deep, thick)
    # Upright with the thickness along x: roll about y so that the cover lies up.
    lying = [
        Part(p.vertices[:, [1, 2, 0]] + [0, -height / 2, thick / 2], p.faces, p.material, p.smooth, p.bevel)
        for p in parts
    ]
    return Shape("book", tuple(lying), colour)


def _open_book(rng: np.random.Generator) -> Shape:
    height, deep = rng.uniform(0.2, 0.26), rng.uniform(0.14, 0.18)
    paper = m.plain(rng, (0.90, 0.88, 0.82), roughness=0.9)
    ink = m.plain(rng, (0.35, 0.35, 0.35), roughness=0.9)
    rgb = m.coloured(rng, "red", "blue", "green", "black", "brown")[1]
    parts = [box([2 * deep + 0.006, height + 0.006, 0.002], [0, 0, 0.001], m.plain(rng, rgb), bevel=0)]
    u = np.linspace(0, 1, 9)
    lines = []
    for side in (-1, 1):
        bulge = 0.006 + 0.014 * np.sin(np.pi * np.clip(u * 0.9 + 0.03, 0, 1)) ** 0.8
        grid = np.stack(
            [
                np.stack([side * u * deep, np.full(9, y), bulge], axis=1)
                for y in np.linspace(-height / 2, height / 2, 2)
            ],
            axis=1,
        )
        parts.append(sheet(grid if side < 0 else grid[:, ::-1], paper))
        for row in range(12):
            y = height * (0.4 - 0.07 * row)
            long = deep * (0.7 if rng.random() < 0.85 else 0.4)
            lines.append(box([long, 0.004, 0.0006], [side * deep * 0.5, y, 0.0206], ink, bevel=0))
    parts.append(joined(lines))
    return Shape("book", tuple(parts), "open")


def table_lamp(rng: np.random.Generator, *, lit: bool = False) -> Shape:
    """A lamp with a cloth shade; the bulb shines when ``lit``."""
    foot = (
        m.wood(rng)
        if rng.random() < 0.5
        else m.plain(rng, m.coloured(rng, "white", "black", "blue", "gray")[1], roughness=0.2)
    )
    shade_rgb = m.coloured(rng, "white", "beige", "white", "gray")[1]
    height, radius = rng.uniform(0.28, 0.4), rng.uniform(0.1, 0.15)
    shade = m.fabric(rng, shade_rgb)
    low, high = height * 0.58, height
    profile = [(radius, low), (radius * 0.68, high), (radius * 0.68 - 0.002, high), (radius - 0.002, low)]
    parts = [
        lathe(
            [(0.065, 0), (0.065, 0.012), (0.02, 0.03), (0.03, height * 0.25), (0.012, height * 0.45), (0.008, low)],
            foot,
        ),
        lathe([*profile, profile[0]], shade.lit(2.2) if lit else shade),
        ellipsoid(
            [0.025, 0.025, 0.035],
            [0, 0, low + 0.06],
            m.plain(rng, (1.0, 0.86, 0.66)).lit(130.0 if lit else 0.0),
            segments=12,
        ),
    ]
    return Shape("lamp", tuple(parts))


def lit_table_lamp(rng: np.random.Generator) -> Shape:
    return table_lamp(rng, lit=True)


def picture(rng: np.random.Generator) -> Shape:
    """A framed picture for a wall; z = 0 is its lower edge."""
    width, height = rng.uniform(0.35, 0.9), rng.uniform(0.35, 0.7)
    frame = m.wood(rng) if rng.random() < 0.5 else m.plain(rng, m.coloured(rng, "black", "white")[1])
    art = m.patterned(
        rng,
        "view" if rng.random() < 0.4 else "picture",
        m.coloured(rng, "blue", "orange", "green", "red", "beige")[1],
        m.coloured(rng, "white", "yellow", "blue", "black", "pink")[1],
        roughness=0.5,
    )
    mount = rng.uniform(0.0, 0.07)
    parts = [
        box([width, 0.022, height], [0, 0, height / 2], frame),
        box([width - 0.04, 0.004, height - 0.04], [0, -0.011, height / 2], m.plain(rng, (0.92, 0.91, 0.88)), bevel=0),
        box([width - 0.05 - mount, 0.004, height - 0.05 - mount], [0, -0.012, height / 2], art, bevel=0),
    ]
    return Shape("picture", tuple(parts))


def rug(rng: np.random.Generator) -> Shape:
    width, depth = rng.uniform(1.6, 2.2), rng.uniform(1.1, 1.5)
    colour, rgb = m.coloured(rng, *_CLOTH)
    if rng.random() < 0.6:
        cloth, colour = (
            m.patterned(rng, "stripes", rgb, m.coloured(rng, *_CLOTH)[1], roughness=0.95, scale=rng.uniform(0.8, 2)),
            "",
        )
    else:
        cloth = m.fabric(rng, rgb, scale=2)
    return Shape("rug", (box([width, depth, 0.01], [0, 0, 0.005], cloth, bevel=0.003),), colour)


def vase(rng: np.random.Generator) -> Shape:
    """A vase: what COCO knows and ACVR does not label."""
    glaze = m.plain(rng, m.coloured(rng, "white", "blue", "black", "green", "red")[1], roughness=0.15)
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
    return Shape("vase", (lathe(profile, glaze),))


def box_of_paper(rng: np.random.Generator) -> Shape:
    """A stack of loose sheets, so that not everything on a desk is an object of the list."""
    sheets = [
        box(
            [0.21, 0.297, 0.001], [0, 0, 0.0006 + 0.0012 * i], m.plain(rng, (0.92, 0.92, 0.90), roughness=0.9), bevel=0
        ).moved(turn=rng.normal(0, 0.06))
        for i in range(int(rng.integers(1, 6)))
    ]
    return Shape("paper", tuple(sheets), "white")
