"""Televisions, computers, telephones and clocks."""

from dataclasses import replace

import numpy as np

from simulation.household.materials import Material, Texture, metal, plain, random_colour
from simulation.household.mesh import MeshPart, ObjectMesh, box, cylinder, ellipsoid, join, lathe, lathe_profile, tube


def _random_screen(rng: np.random.Generator, texture: Texture, on_probability: float) -> Material:
    """Sample the picture on a screen, or glossy black if it is off."""
    if rng.random() > on_probability:
        return plain(rng, (0.012, 0.012, 0.014), roughness=0.08)
    first = random_colour(rng, "blue", "green", "orange", "purple", "white", "red")[1]
    second = random_colour(rng, "blue", "yellow", "white", "green", "black")[1]
    return Material(
        texture, first, second, roughness=0.1, emission=float(rng.uniform(1.0, 2.2)), seed=int(rng.integers(10_000))
    )


def television(rng: np.random.Generator) -> ObjectMesh:
    """Build a television on a foot or on two feet."""
    return _flat_screen(
        rng, rng.uniform(0.9, 1.3), _random_screen(rng, "view", on_probability=0.55), wide_feet=rng.random() < 0.5
    )


def monitor(rng: np.random.Generator) -> ObjectMesh:
    """Build a computer monitor, which has ACVR's class television."""
    screen = _flat_screen(
        rng, rng.uniform(0.48, 0.62), _random_screen(rng, "screen", on_probability=0.75), wide_feet=False
    )
    return replace(screen, caption_noun="computer monitor")


def _flat_screen(rng: np.random.Generator, width: float, screen: Material, *, wide_feet: bool) -> ObjectMesh:
    """Build a flat screen ``width`` metres wide on one foot or, with ``wide_feet``, on two."""
    height, lift = width * 9 / 16 + 0.02, (0.07 if width > 0.8 else 0.12)
    case = plain(rng, (0.025, 0.025, 0.027), roughness=0.3)
    edge = rng.uniform(0.008, 0.02)
    parts = [
        box([width, 0.03, height], [0, 0.012, lift + height / 2], case, bevel=0.004),
        box([width * 0.6, 0.045, height * 0.5], [0, 0.038, lift + height * 0.42], case, bevel=0.015),
        box(
            [width - 2 * edge, 0.002, height - 2.4 * edge],
            [0, -0.0035, lift + height / 2 + edge * 0.2],
            screen,
            bevel=0,
        ),
    ]
    if wide_feet:
        for sx in (-1, 1):
            parts.append(box([0.025, 0.22, 0.012], [sx * width * 0.36, 0.01, 0.006], case))
            parts.append(box([0.02, 0.03, lift], [sx * width * 0.36, 0.012, lift / 2], case))
    else:
        parts.append(box([width * 0.38, 0.2, 0.012], [0, 0.015, 0.006], case, bevel=0.005))
        parts.append(
            box([width * 0.07, 0.03, lift + height * 0.2], [0, 0.045, (lift + height * 0.2) / 2 + 0.008], case)
        )
    return ObjectMesh("television", tuple(parts))


def _keys(width: float, depth: float, z: float, material: Material) -> MeshPart:
    """Build five rows of keys with a space bar, centred on the origin; sizes in metres."""
    columns, rows = 14, 5
    pitch_x, pitch_y = width / columns, depth / rows
    keys = []
    for row in range(rows):
        x = -width / 2
        widths = [1, 1, 1, 6, 1, 1, 1, 1, 1] if row == rows - 1 else [1] * columns
        for units in widths:
            keys.append(
                box(
                    [units * pitch_x * 0.86, pitch_y * 0.86, 0.006],
                    [x + units * pitch_x / 2, depth / 2 - pitch_y * (row + 0.5), z],
                    material,
                    bevel=0,
                )
            )
            x += units * pitch_x
    return join(keys)


def laptop(rng: np.random.Generator) -> ObjectMesh:
    """Build an open laptop."""
    colour, rgb = random_colour(rng, "silver", "black", "gray")
    case = (
        Material("plain", rgb, roughness=0.35, metallic=0.8) if colour == "silver" else plain(rng, rgb, roughness=0.4)
    )
    black = plain(rng, (0.03, 0.03, 0.032), roughness=0.4)
    width, depth, thickness = rng.uniform(0.31, 0.37), rng.uniform(0.215, 0.25), 0.015
    parts = [box([width, depth, thickness], [0, 0, thickness / 2 + 0.002], case, bevel=0.004)]
    parts.append(box([width * 0.86, depth * 0.46, 0.001], [0, depth * 0.16, thickness + 0.0022], black, bevel=0))
    parts.append(
        _keys(
            width * 0.85,
            depth * 0.44,
            thickness + 0.003,
            black if colour != "black" else plain(rng, (0.09, 0.09, 0.09)),
        ).transformed([0, depth * 0.16, 0])
    )
    parts.append(
        box(
            [width * 0.3, depth * 0.27, 0.001],
            [0, -depth * 0.3, thickness + 0.0022],
            plain(rng, (rgb[0] * 0.8, rgb[1] * 0.8, rgb[2] * 0.8)),
            bevel=0,
        )
    )
    tilt = -rng.uniform(0.12, 0.5)
    height = depth * 0.98
    lid = [
        box([width, 0.007, height], [0, 0, height / 2], case, bevel=0.003),
        box([width - 0.008, 0.001, height - 0.012], [0, -0.004, height / 2], black, bevel=0),
        box(
            [width - 0.024, 0.001, height - 0.036],
            [0, -0.005, height / 2 + 0.004],
            _random_screen(rng, "screen", on_probability=0.8),
            bevel=0,
        ),
    ]
    parts += [part.transformed([0, depth / 2 - 0.006, thickness + 0.004], tilt=tilt) for part in lid]
    return ObjectMesh("laptop", tuple(parts), colour)


def keyboard(rng: np.random.Generator) -> ObjectMesh:
    """Build a keyboard with a numeric pad."""
    colour, rgb = random_colour(rng, "black", "white", "gray")
    case = plain(rng, rgb, roughness=0.45)
    r, g, b = (min(1.0, c * 1.15 + 0.06) for c in rgb)
    key = plain(rng, (0.05, 0.05, 0.055) if colour == "black" and rng.random() < 0.6 else (r, g, b))
    width, depth = rng.uniform(0.40, 0.45), rng.uniform(0.125, 0.15)
    main = width * 0.78
    parts = [
        box([width, depth, 0.014], [0, 0, 0.009], case, bevel=0.005),
        _keys(main - 0.012, depth - 0.02, 0.018, key).transformed([-(width - main) / 2, 0, 0]),
    ]
    pad = [
        box([0.017, 0.016, 0.006], [width / 2 - 0.018 - 0.02 * c, -depth / 2 + 0.022 + 0.022 * r, 0.018], key, bevel=0)
        for c in range(4)
        for r in range(5)
    ]
    parts.append(join(pad))
    return ObjectMesh("keyboard", tuple(parts), colour)


def mouse(rng: np.random.Generator) -> ObjectMesh:
    """Build a computer mouse with a wheel."""
    colour, rgb = random_colour(rng, "black", "black", "white", "gray")
    body = plain(rng, rgb, roughness=0.35)
    dark = plain(rng, (0.02, 0.02, 0.02) if colour != "black" else (0.2, 0.2, 0.2))
    length, width = rng.uniform(0.10, 0.118), rng.uniform(0.058, 0.066)
    shell = ellipsoid([width / 2, length / 2, 0.034], [0, 0, 0.0], body, squareness=0.75, segments=28)
    vertices = shell.vertices.copy()
    vertices[:, 2] = np.maximum(vertices[:, 2], 0) + 0.002
    vertices[:, 2] *= np.interp(vertices[:, 1], [-length / 2, 0, length / 2], [1.12, 1.08, 0.72])
    parts = [
        MeshPart(vertices, shell.faces, body, smooth=True),
        cylinder(0.009, 0.006, [0, 0, 0], dark).transformed(
            [-0.003, length * 0.27, 0.025], turn=-np.pi / 2, tilt=np.pi / 2
        ),
        box([0.0012, length * 0.33, 0.003], [0, length * 0.3, 0.0255], dark, bevel=0),
    ]
    return ObjectMesh("mouse", tuple(parts), colour)


def cell_phone(rng: np.random.Generator) -> ObjectMesh:
    """Build a smartphone that lies with its screen upwards."""
    colour, rgb = random_colour(rng, "black", "white", "silver", "blue", "red")
    width, length = rng.uniform(0.068, 0.077), rng.uniform(0.14, 0.16)
    case = plain(rng, rgb, roughness=0.3)
    parts = [
        box([width, length, 0.0085], [0, 0, 0.0043], case, bevel=0.002),
        box(
            [width - 0.004, length - 0.004, 0.0006],
            [0, 0, 0.0088],
            plain(rng, (0.012, 0.012, 0.013), roughness=0.06),
            bevel=0,
        ),
        box(
            [width - 0.009, length - 0.016, 0.0005],
            [0, 0, 0.0094],
            _random_screen(rng, "screen", on_probability=0.5),
            bevel=0,
        ),
    ]
    return ObjectMesh("cell phone", tuple(parts), colour)


def wall_clock(rng: np.random.Generator) -> ObjectMesh:
    """Build a round clock for a wall; z = 0 is its lower edge."""
    radius = rng.uniform(0.12, 0.18)
    return _clock(rng, radius, 0.035)


def table_clock(rng: np.random.Generator) -> ObjectMesh:
    """Build a small round clock on two feet."""
    face = _clock(rng, rng.uniform(0.045, 0.06), 0.045)
    dark = plain(rng, (0.05, 0.05, 0.05))
    lifted = [part.transformed([0, 0, 0.012]) for part in face.parts]
    feet = [tube([[sx * 0.03, 0.01, 0.002], [sx * 0.022, 0.01, 0.02]], 0.005, dark) for sx in (-1, 1)]
    return ObjectMesh("clock", (*lifted, *feet), face.colour)


def _clock(rng: np.random.Generator, radius: float, depth: float) -> ObjectMesh:
    """Build a round clock with a rim, hour marks and hands at a random time; its face is towards -y."""
    colour, rgb = random_colour(rng, "black", "white", "silver", "red", "brown")
    rim = metal(rng) if colour == "silver" else plain(rng, rgb, roughness=0.3)
    white = plain(rng, (0.93, 0.92, 0.88), roughness=0.5)
    ink = plain(rng, (0.02, 0.02, 0.02))

    def facing(part: MeshPart, forward: float) -> MeshPart:
        """Turn a part that lies on its back upright, and move it by ``forward`` along y."""
        return part.transformed([0, forward, radius * 1.08], tilt=np.pi / 2)

    ring = lathe_profile(
        [radius * 0.93, radius * 0.93, radius * 1.0, radius * 1.07, radius * 1.08, radius * 0.9],
        [depth * 0.2, depth, depth, depth * 0.6, 0, 0],
    )
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
        marks.append(box(size, [0, 0, 0], ink, bevel=0).transformed(centre, turn=angle))
    parts.append(facing(join(marks), front))
    minute, hour_angle = rng.uniform(0, 2 * np.pi, 2)
    for angle, length, width, height in ((minute, 0.72, 0.03, 0.002), (hour_angle, 0.48, 0.05, 0.004)):
        hand = box(
            [radius * width, radius * length, 0.001], [0, radius * length * 0.42, height], ink, bevel=0
        ).transformed(turn=angle)
        parts.append(facing(hand, front))
    return ObjectMesh("clock", tuple(parts), colour)
