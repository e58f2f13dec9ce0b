"""Tables, desks, cabinets and shelves."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, box, cylinder, lathe, tube
from simulation.household.object_mesh import ObjectMesh, SupportSurface


def _random_finish(rng: np.random.Generator) -> tuple[materials.Material, str, str]:
    """Sample a finish of wood or paint: the material, and the words for its colour and material (or "")."""
    if rng.random() < 0.7:
        wood = str(rng.choice(list(materials.WOODS)))
        return materials.wood(rng, wood), "brown" if wood in ("brown", "honey") else "", "wooden"
    colour, rgb = materials.random_colour(rng, "white", "black", "gray")
    return materials.plain(rng, rgb, roughness=0.35), colour, ""


def dining_table(rng: np.random.Generator) -> ObjectMesh:
    """Build a rectangular table on four legs or a round one on a pedestal."""
    top, colour, material = _random_finish(rng)
    height, thickness = rng.uniform(0.72, 0.77), rng.uniform(0.022, 0.045)
    if rng.random() < 0.25:
        radius = rng.uniform(0.48, 0.65)
        foot = materials.metal(rng) if rng.random() < 0.5 else top
        column = lathe(
            [
                (radius * 0.5, 0),
                (radius * 0.5, 0.02),
                (0.05, 0.06),
                (0.04, 0.3),
                (0.04, height - thickness - 0.02),
                (0.12, height - thickness),
            ],
            foot,
        )
        parts = [cylinder(radius, thickness, [0, 0, height - thickness], top), column]
        half = radius * 0.66
        return ObjectMesh("dining table", tuple(parts), colour, material, (SupportSurface(0, 0, half, half, height),))
    width, depth = rng.uniform(1.15, 1.8), rng.uniform(0.75, 0.95)
    legs = top if rng.random() < 0.7 else materials.metal(rng)
    parts = [
        box([width, depth, thickness], [0, 0, height - thickness / 2], top, bevel=0.006),
        *_legs(rng, width, depth, height - thickness, legs),
    ]
    if rng.random() < 0.7:
        for sy in (-1, 1):
            parts.append(box([width - 0.2, 0.02, 0.07], [0, sy * (depth / 2 - 0.09), height - thickness - 0.036], legs))
    return ObjectMesh(
        "dining table",
        tuple(parts),
        colour,
        material,
        (SupportSurface(0, 0, width / 2 - 0.03, depth / 2 - 0.03, height),),
    )


def _legs(
    rng: np.random.Generator, width: float, depth: float, height: float, material: materials.Material
) -> list[MeshPart]:
    """Build four square or tapered legs of a table."""
    side, inset = rng.uniform(0.04, 0.075), rng.uniform(0.03, 0.09)
    places = [(sx * (width / 2 - inset), sy * (depth / 2 - inset)) for sx in (-1, 1) for sy in (-1, 1)]
    if rng.random() < 0.5:
        return [box([side, side, height], [x, y, height / 2], material, bevel=0.005) for x, y in places]
    splay = rng.uniform(0, 0.03)
    return [
        tube([[x + np.sign(x) * splay, y + np.sign(y) * splay, 0], [x, y, height]], [side * 0.3, side * 0.5], material)
        for x, y in places
    ]


def coffee_table(rng: np.random.Generator) -> ObjectMesh:
    """Build a low table, in half of the cases with a second board."""
    top, colour, material = _random_finish(rng)
    width, depth, height = rng.uniform(0.8, 1.15), rng.uniform(0.5, 0.65), rng.uniform(0.38, 0.46)
    legs = materials.metal(rng) if rng.random() < 0.3 else top
    parts = [
        box([width, depth, 0.03], [0, 0, height - 0.015], top, bevel=0.006),
        *_legs(rng, width, depth, height - 0.03, legs),
    ]
    if rng.random() < 0.5:
        parts.append(box([width - 0.15, depth - 0.15, 0.018], [0, 0, 0.14], top))
    return ObjectMesh(
        "coffee table",
        tuple(parts),
        colour,
        material,
        (SupportSurface(0, 0, width / 2 - 0.03, depth / 2 - 0.03, height),),
    )


def desk(rng: np.random.Generator) -> ObjectMesh:
    """Build a desk with legs on one side and a block of drawers on the other."""
    top, colour, material = _random_finish(rng)
    width, depth, height = rng.uniform(1.2, 1.6), rng.uniform(0.6, 0.75), rng.uniform(0.72, 0.75)
    metal = materials.metal(rng)
    legs = (
        top if rng.random() < 0.5 else materials.plain(rng, materials.random_colour(rng, "black", "white", "gray")[1])
    )
    parts = [box([width, depth, 0.028], [0, 0, height - 0.014], top, bevel=0.004)]
    side, block_width = (1 if rng.random() < 0.5 else -1), 0.4
    for sy in (-1, 1):
        parts.append(
            box(
                [0.05, 0.05, height - 0.03],
                [-side * (width / 2 - 0.05), sy * (depth / 2 - 0.05), (height - 0.03) / 2],
                legs,
            )
        )
    x = side * (width / 2 - block_width / 2 - 0.01)
    parts.append(box([block_width, depth - 0.06, height - 0.05], [x, 0, (height - 0.05) / 2 + 0.01], legs))
    count = int(rng.integers(2, 4))
    for i in range(count):
        drawer_height = (height - 0.1) / count
        z = 0.05 + drawer_height * (i + 0.5)
        parts.append(
            box(
                [block_width - 0.02, 0.018, drawer_height - 0.012],
                [x, -depth / 2 + 0.022, z],
                top if rng.random() < 0.5 else legs,
            )
        )
        parts.append(box([0.12, 0.018, 0.012], [x, -depth / 2 + 0.008, z + drawer_height * 0.25], metal))
    return ObjectMesh(
        "desk", tuple(parts), colour, material, (SupportSurface(0, 0, width / 2 - 0.03, depth / 2 - 0.03, height),)
    )


def cabinet(rng: np.random.Generator, *, low: bool = True) -> ObjectMesh:
    """Build a sideboard or, if not ``low``, a chest of drawers."""
    front, colour, material = _random_finish(rng)
    width = rng.uniform(1.2, 1.7) if low else rng.uniform(0.7, 1.0)
    depth, height, foot = rng.uniform(0.38, 0.48), (rng.uniform(0.42, 0.58) if low else rng.uniform(0.75, 1.0)), 0.08
    metal = materials.metal(rng)
    parts = [box([width, depth, height - foot], [0, 0, (height + foot) / 2], front, bevel=0.004)]
    parts += [
        box([0.04, 0.04, foot], [sx * (width / 2 - 0.06), sy * (depth / 2 - 0.06), foot / 2], front)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    columns, rows = (int(rng.integers(2, 4)), 1) if low else (1, int(rng.integers(3, 5)))
    for i in range(columns):
        for j in range(rows):
            w, h = (width - 0.04) / columns, (height - foot - 0.04) / rows
            x, z = -width / 2 + 0.02 + w * (i + 0.5), foot + 0.02 + h * (j + 0.5)
            parts.append(box([w - 0.01, 0.018, h - 0.01], [x, -depth / 2 - 0.009, z], front))
            parts.append(
                cylinder(0.012, 0.025, [0, 0, 0], metal).transformed(
                    [x + (0 if rows > 1 else w * 0.35), -depth / 2 - 0.018, z], tilt=np.pi / 2
                )
            )
    return ObjectMesh(
        "cabinet",
        tuple(parts),
        colour,
        material,
        (SupportSurface(0, 0.01, width / 2 - 0.04, depth / 2 - 0.04, height),),
    )


def chest(rng: np.random.Generator) -> ObjectMesh:
    """Build a chest of drawers."""
    return cabinet(rng, low=False)


def nightstand(rng: np.random.Generator) -> ObjectMesh:
    """Build a bedside cabinet with two drawers."""
    front, colour, material = _random_finish(rng)
    width, depth, height = rng.uniform(0.4, 0.5), rng.uniform(0.35, 0.42), rng.uniform(0.45, 0.58)
    parts = [box([width, depth, height - 0.1], [0, 0, (height + 0.1) / 2], front)]
    parts += [
        box([0.035, 0.035, 0.1], [sx * (width / 2 - 0.03), sy * (depth / 2 - 0.03), 0.05], front)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    metal = materials.metal(rng)
    for z in (0.1 + (height - 0.1) * 0.27, 0.1 + (height - 0.1) * 0.73):
        parts.append(box([width - 0.03, 0.016, (height - 0.14) / 2], [0, -depth / 2 - 0.008, z], front))
        parts.append(box([0.1, 0.018, 0.012], [0, -depth / 2 - 0.025, z], metal))
    return ObjectMesh(
        "nightstand",
        tuple(parts),
        colour,
        material,
        (SupportSurface(0, 0, width / 2 - 0.02, depth / 2 - 0.02, height),),
    )


def bookshelf(rng: np.random.Generator) -> ObjectMesh:
    """Build a bookshelf with a back; every board is a surface."""
    wood, colour, material = _random_finish(rng)
    width, depth, height = rng.uniform(0.7, 1.0), rng.uniform(0.28, 0.34), rng.uniform(1.3, 1.95)
    boards = round(height / 0.36)
    parts = [box([width, 0.012, height], [0, depth / 2 - 0.006, height / 2], wood)]
    parts += [
        box([0.022, depth - 0.012, height], [sx * (width / 2 - 0.011), -0.006, height / 2], wood) for sx in (-1, 1)
    ]
    surfaces = []
    for i in range(boards + 1):
        z = 0.05 + (height - 0.062) * i / boards
        parts.append(box([width - 0.046, depth - 0.014, 0.022], [0, -0.006, z], wood))
        surfaces.append(
            SupportSurface(0, -0.006, width / 2 - 0.03, depth / 2 - 0.02, z + 0.011, "shelf" if i < boards else "top")
        )
    return ObjectMesh("shelf", tuple(parts), colour, material, tuple(surfaces))
