"""Fruit and cakes."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, cylinder, ellipsoid, lathe, prism, tube
from simulation.household.object_mesh import ObjectMesh
from simulation.household.objects.tableware import plate


def banana(rng: np.random.Generator) -> ObjectMesh:
    """Build a banana or a bunch of up to five that lies on its side."""
    count = int(rng.choice([1, 2, 3, 4, 5], p=[0.25, 0.2, 0.25, 0.2, 0.1]))
    ripe = materials.jitter(rng, (0.90, 0.72, 0.10))
    skin = materials.patterned(rng, "fruit", ripe, (0.35, 0.22, 0.06), roughness=0.5)
    tip = materials.plain(rng, (0.20, 0.13, 0.05), roughness=0.8)
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
    skin = materials.patterned(
        rng,
        "fruit",
        materials.jitter(rng, rgb),
        (0.75, 0.55, 0.18) if name == "red" else (0.55, 0.65, 0.25),
        roughness=0.25,
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
        materials.plain(rng, (0.2, 0.13, 0.06)),
        segments=6,
    )
    return ObjectMesh("apple", (body, stem), name)


def orange(rng: np.random.Generator) -> ObjectMesh:
    """Build an orange."""
    skin = materials.patterned(
        rng, "fruit", materials.jitter(rng, (0.92, 0.42, 0.04)), (0.95, 0.52, 0.10), roughness=0.4, scale=0.35
    )
    radius = rng.uniform(0.036, 0.044)
    navel = cylinder(0.004, 0.0015, [0, 0, 2 * radius * 0.96 - 0.0012], materials.plain(rng, (0.25, 0.3, 0.1)))
    return ObjectMesh(
        "orange", (ellipsoid([radius, radius, radius * 0.96], [0, 0, radius * 0.96], skin), navel), "orange"
    )


def cake(rng: np.random.Generator) -> ObjectMesh:
    """Build a round layered cake on a plate, whole or with slices missing, decorated with berries, candles or icing."""
    kind = rng.choice(["chocolate", "cream", "pink"])
    icing_rgb = {"chocolate": (0.17, 0.08, 0.04), "cream": (0.93, 0.89, 0.79), "pink": (0.90, 0.58, 0.64)}[kind]
    colour = {"chocolate": "chocolate", "cream": "white", "pink": "pink"}[kind]
    icing = materials.plain(rng, materials.jitter(rng, icing_rgb, 0.02), roughness=0.4)
    crumb = materials.patterned(
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

    def slab(r: float, low: float, high: float, material: materials.Material) -> MeshPart:
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
    berry = materials.plain(rng, (0.62, 0.03, 0.05), roughness=0.2)
    top = base + height + 0.007
    decoration = rng.choice(["berries", "candles", "none"], p=[0.55, 0.25, 0.2])
    places = np.linspace(missing_angle + 0.2, 2 * np.pi - 0.2, 9)
    for a in places if decoration == "berries" else ():
        x, y = radius * 0.78 * np.cos(a), radius * 0.78 * np.sin(a)
        parts.append(ellipsoid([0.011, 0.011, 0.012], [x, y, top + 0.009], berry, segments=12))
    for a in places[::2] if decoration == "candles" else ():
        x, y = radius * 0.6 * np.cos(a), radius * 0.6 * np.sin(a)
        stick = materials.plain(rng, materials.random_colour(rng, "white", "red", "blue", "yellow", "pink")[1])
        parts += [
            cylinder(0.003, 0.06, [x, y, top], stick),
            ellipsoid(
                [0.004, 0.004, 0.009],
                [x, y, top + 0.07],
                materials.plain(rng, (1.0, 0.75, 0.3)).emitting(25),
                segments=10,
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


def _wall(path: np.ndarray, height: float, material: materials.Material, *, closed: bool) -> MeshPart:
    """Build an upright strip of ``height`` metres along a path (n, 3)."""
    n = len(path)
    vertices = np.concatenate([path, path + np.array([0, 0, height])])
    faces = tuple((i, (i + 1) % n, n + (i + 1) % n, n + i) for i in range(n if closed else n - 1))
    return MeshPart(vertices, faces, material, smooth=True)
