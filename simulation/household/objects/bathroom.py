"""Toilet, washbasin, bathtub, mirror, towel and bath mat; taps, which kitchens have as well."""

import numpy as np

from simulation.household.materials import COLOURS, Material, fabric, jitter, metal, plain, random_colour, wood
from simulation.household.mesh import MeshPart, ObjectMesh, box, cylinder, ellipsoid, lathe, lathe_profile, tube


def tap(chrome: Material, base: list[float], height: float, reach: float) -> list[MeshPart]:
    """Build a tap with a lever and a curved spout.

    Args:
        chrome: material.
        base: centre of its foot, (3,).
        height: of the spout in metres.
        reach: metres from the foot to the spout's end, towards -y.
    """
    x, y, z = base
    bend = np.linspace(0, np.pi, 9)
    spout = [[x, y, z], [x, y, z + height * 0.4]]
    spout += [[x, y - reach / 2 * (1 - np.cos(a)), z + height - reach * 0.3 + reach * 0.3 * np.sin(a)] for a in bend]
    spout.append([x, y - reach, z + height - reach * 0.3 - 0.04])
    return [
        cylinder(0.024, 0.03, base, chrome),
        tube(spout, 0.011, chrome),
        tube([[x + 0.02, y, z + 0.04], [x + 0.075, y, z + 0.075]], [0.009, 0.006], chrome),
    ]


def _random_ceramic(rng: np.random.Generator) -> Material:
    """Sample white glazed ceramic."""
    return plain(rng, jitter(rng, (0.92, 0.92, 0.91), 0.01), roughness=0.1)


def _stretched(part: MeshPart, length: float, offset: float) -> MeshPart:
    """Scale a part in y by ``length`` and move it by ``offset``, which makes a circle oval."""
    vertices = part.vertices.copy()
    vertices[:, 1] *= length
    vertices[:, 1] += offset
    return MeshPart(vertices, part.faces, part.material, part.smooth)


def toilet(rng: np.random.Generator) -> ObjectMesh:
    """Build a toilet with a cistern, its lid open or closed."""
    white, chrome = _random_ceramic(rng), metal(rng)
    width = rng.uniform(0.17, 0.19)
    bowl = lathe_profile(
        [0.10, 0.105, 0.085, 0.10, width - 0.02, width, width - 0.005, width - 0.045, width - 0.06, 0.07, 0.03],
        [0, 0.02, 0.12, 0.22, 0.34, 0.395, 0.41, 0.41, 0.36, 0.26, 0.22],
    )
    parts = [_stretched(lathe(bowl, white, segments=40), 1.28, -0.08)]
    lid_up = rng.random() < 0.45
    seat_colour = white if rng.random() < 0.8 else wood(rng)
    ring = lathe_profile(
        [width - 0.055, width + 0.002, width + 0.004, width - 0.01, width - 0.045, width - 0.055],
        [0.415, 0.415, 0.428, 0.435, 0.435, 0.425],
    )
    if lid_up:
        parts.append(_stretched(lathe([*ring, ring[0]], seat_colour, segments=40), 1.27, -0.08))
        disc = [(0.0, 0.0), (width, 0.0), (width + 0.004, 0.01), (width - 0.01, 0.02), (0.0, 0.022)]
        lid = _stretched(lathe(disc, seat_colour, segments=40), 1.2, -0.2)
        parts.append(lid.transformed([0, 0.125, 0.44], tilt=-np.pi / 2 - 0.12))
    else:
        closed = [(0, 0.413), (width, 0.413), (width + 0.005, 0.425), (width, 0.445), (width - 0.03, 0.452), (0, 0.455)]
        parts.append(_stretched(lathe(closed, seat_colour, segments=40), 1.27, -0.08))
    cistern_width, cistern_depth = rng.uniform(0.36, 0.42), rng.uniform(0.16, 0.19)
    back = 0.33
    parts += [
        box([0.22, 0.22, 0.40], [0, back - 0.18, 0.2], white, bevel=0.03),
        box([cistern_width, cistern_depth, 0.36], [0, back - cistern_depth / 2, 0.40 + 0.18], white, bevel=0.025),
        box(
            [cistern_width + 0.015, cistern_depth + 0.01, 0.03], [0, back - cistern_depth / 2, 0.775], white, bevel=0.01
        ),
        cylinder(0.022, 0.008, [0, back - cistern_depth / 2, 0.79], chrome),
    ]
    return ObjectMesh("toilet", tuple(parts), "white")


def washbasin(rng: np.random.Generator) -> ObjectMesh:
    """Build a basin with a tap at its mounting height; ``washstand`` is a separate object without a label."""
    white, chrome = _random_ceramic(rng), metal(rng)
    height, width, depth = rng.uniform(0.82, 0.88), rng.uniform(0.26, 0.31), 0.78
    profile = [
        (0.06, height - 0.17),
        (0.12, height - 0.15),
        (width - 0.03, height - 0.05),
        (width, height - 0.015),
        (width - 0.005, height),
        (width - 0.04, height),
        (width - 0.07, height - 0.05),
        (0.1, height - 0.12),
        (0.02, height - 0.13),
    ]
    back = width * depth
    parts = [
        _stretched(lathe(profile, white, segments=40), depth, -0.05),
        box([width * 1.7, 0.12, 0.09], [0, back - 0.06, height - 0.05], white, bevel=0.02),
        cylinder(0.018, 0.004, [0, -0.05, height - 0.128], chrome),
        *tap(chrome, [0, back - 0.055, height - 0.006], 0.12, 0.12),
    ]
    return ObjectMesh("sink", tuple(parts), "white")


def washstand(rng: np.random.Generator, basin: ObjectMesh) -> ObjectMesh:
    """Build a pedestal or a cupboard under a washbasin, in the basin's frame."""
    top, back, width = float(basin.bounds[0, 2]) - 0.005, float(basin.bounds[1, 1]), float(basin.size[0]) * 0.85
    if rng.random() < 0.5:
        column = lathe([(0.12, 0), (0.11, 0.03), (0.08, 0.2), (0.085, top - 0.13), (0.11, top)], _random_ceramic(rng))
        return ObjectMesh("pedestal", (column.transformed([0, 0.03, 0]),), "white")
    finish = wood(rng) if rng.random() < 0.5 else plain(rng, COLOURS["white"])
    chrome, foot, depth = metal(rng), 0.18, back + 0.05
    middle, height = (foot + top) / 2, top - foot
    parts = [box([width, depth, height], [0, back - depth / 2 - 0.005, middle], finish)]
    face = back - depth - 0.005
    for sx in (-1, 1):
        parts.append(box([width * 0.49, 0.018, height - 0.02], [sx * width * 0.25, face - 0.009, middle], finish))
        parts.append(box([0.012, 0.018, 0.12], [sx * 0.04, face - 0.026, top * 0.8], chrome))
    return ObjectMesh(
        "cabinet",
        tuple(parts),
        "" if finish.texture == "wood" else "white",
        "wooden" if finish.texture == "wood" else "",
    )


def bathtub(rng: np.random.Generator) -> ObjectMesh:
    """Build a bathtub with a tap."""
    white, chrome = _random_ceramic(rng), metal(rng)
    length, width, height, wall = 1.65, 0.74, 0.56, 0.06
    parts = [
        box([length, wall, height], [0, -(width - wall) / 2, height / 2], white, bevel=0.012),
        box([length, wall, height], [0, (width - wall) / 2, height / 2], white, bevel=0.02),
        # The short sides end at the long ones, because coplanar faces would flicker.
        *[
            box(
                [wall * 1.4, width - 2 * wall, height],
                [sx * (length - wall * 1.4) / 2, 0, height / 2],
                white,
                bevel=0.004,
            )
            for sx in (-1, 1)
        ],
        box([length - 0.1, width - 0.08, 0.1], [0, 0, 0.13], white, bevel=0.03),
        *tap(chrome, [length / 2 - 0.4, width / 2 - 0.04, height], 0.16, 0.16),
    ]
    return ObjectMesh("bathtub", tuple(parts), "white")


def mirror(rng: np.random.Generator) -> ObjectMesh:
    """Build a framed mirror; z = 0 is its lower edge."""
    width, height = rng.uniform(0.5, 0.7), rng.uniform(0.6, 0.9)
    frame = metal(rng) if rng.random() < 0.5 else wood(rng)
    silvered = Material("plain", (0.93, 0.94, 0.94), roughness=0.01, metallic=1.0)
    parts = [
        box([width, 0.016, height], [0, 0, height / 2], frame),
        box([width - 0.03, 0.006, height - 0.03], [0, -0.008, height / 2], silvered, bevel=0),
    ]
    return ObjectMesh("mirror", tuple(parts))


def towel(rng: np.random.Generator) -> ObjectMesh:
    """Build a towel on a rail; z = 0 is its lower edge."""
    colour, rgb = random_colour(rng, "white", "blue", "gray", "pink", "green", "beige")
    cloth, chrome = fabric(rng, rgb), metal(rng)
    parts = [
        box([0.42, 0.035, 0.6], [0, -0.04, 0.3], cloth, bevel=0.008),
        ellipsoid([0.21, 0.026, 0.026], [0, -0.04, 0.6], cloth, squareness=0.4),
        box([0.52, 0.016, 0.016], [0, -0.04, 0.605], chrome),
        *[box([0.016, 0.05, 0.016], [sx * 0.25, -0.02, 0.605], chrome) for sx in (-1, 1)],
    ]
    return ObjectMesh("towel", tuple(parts), colour)


def bath_mat(rng: np.random.Generator) -> ObjectMesh:
    """Build a bath mat."""
    colour, rgb = random_colour(rng, "white", "blue", "gray", "pink", "green", "beige")
    part = box([0.75, 0.5, 0.014], [0, 0, 0.007], fabric(rng, rgb), bevel=0.005)
    return ObjectMesh("mat", (part,), colour)
