"""Chairs, couches, beds, tables, cabinets and shelves."""

import numpy as np

from simulation.household.materials import (
    COLOURS,
    WOODS,
    Material,
    fabric,
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
    lathe,
    lathe_profile,
    sheet,
    tube,
)


def chair(rng: np.random.Generator) -> ObjectMesh:
    """Build a wooden chair, a padded one or one with a plastic shell."""
    style = rng.choice(["slats", "padded", "shell"], p=[0.45, 0.3, 0.25])
    width, depth = rng.uniform(0.40, 0.47), rng.uniform(0.40, 0.46)
    seat, back = rng.uniform(0.44, 0.47), rng.uniform(0.86, 0.98)
    if style == "shell":
        return _shell_chair(rng, width, depth, seat, back)
    painted = rng.random() < 0.3
    if painted:
        colour, rgb = random_colour(rng, "white", "black", "gray", "blue")
        frame, material = plain(rng, rgb), ""
    else:
        kind = str(rng.choice(list(WOODS)))
        frame, colour, material = wood(rng, kind), "brown" if kind in ("brown", "honey") else "", "wooden"
    leg = rng.uniform(0.032, 0.042)
    x, y = width / 2 - leg / 2, depth / 2 - leg / 2
    parts = [box([leg, leg, seat - 0.03], [sx * x, -y, (seat - 0.03) / 2], frame) for sx in (-1, 1)]
    lean = rng.uniform(0.03, 0.06)
    parts += [
        tube([[sx * x, y, 0], [sx * x, y, seat], [sx * x, y + lean, back]], leg * 0.55, frame, segments=4)
        for sx in (-1, 1)
    ]
    parts.append(box([width, depth, 0.03], [0, 0, seat - 0.015], frame, bevel=0.008))
    parts += [box([0.02, depth - leg, 0.05], [sx * x, 0, seat - 0.06], frame) for sx in (-1, 1)]
    parts.append(box([width - leg, 0.02, 0.05], [0, -y, seat - 0.06], frame))
    if style == "padded":
        colour, rgb = random_colour(rng, "black", "gray", "red", "blue", "beige", "green")
        cloth, material = fabric(rng, rgb), ""
        parts.append(ellipsoid([width / 2, depth / 2, 0.03], [0, 0, seat + 0.028], cloth, squareness=0.35))
        parts.append(ellipsoid([width / 2 - 0.03, 0.03, 0.17], [0, y + lean * 0.45, back - 0.2], cloth, squareness=0.4))
        return ObjectMesh("chair", tuple(parts), colour, material)
    if rng.random() < 0.5:
        heights = np.linspace(seat + 0.14, back - 0.04, int(rng.integers(2, 5)))
        for height in heights:
            offset = lean * (height - seat) / (back - seat)
            parts.append(box([width - leg, 0.018, 0.06], [0, y + offset, height], frame))
    else:
        parts.append(box([width, 0.022, 0.08], [0, y + lean * 0.95, back - 0.02], frame, bevel=0.01))
        for sx in np.linspace(-0.5, 0.5, int(rng.integers(4, 6))) * (width - 3 * leg):
            parts.append(tube([[sx, y, seat], [sx, y + lean * 0.9, back - 0.04]], 0.009, frame, segments=8))
    return ObjectMesh("chair", tuple(parts), colour, material)


def _shell_chair(rng: np.random.Generator, width: float, depth: float, seat: float, back: float) -> ObjectMesh:
    """Build a chair with a plastic shell; sizes and the heights of seat and back in metres."""
    colour, rgb = random_colour(rng, "white", "black", "gray", "red", "yellow", "green", "blue")
    shell = plain(rng, rgb, roughness=0.4)
    legs = wood(rng, "light") if rng.random() < 0.5 else metal(rng)
    back = min(back, 0.84)
    # (y, z) from the front edge over the seat to the top of the back.
    profile = np.array(
        [
            [-depth / 2, seat - 0.015],
            [-depth / 2 + 0.03, seat],
            [0, seat - 0.02],
            [depth / 2 - 0.08, seat],
            [depth / 2 - 0.02, seat + 0.07],
            [depth / 2 + 0.03, (seat + back) / 2],
            [depth / 2 + 0.06, back],
        ]
    )
    smooth = _resample(profile, 18)
    across = np.linspace(-1, 1, 13)
    grid = np.array(
        [
            [
                [
                    width / 2 * u * (0.96 if i < 14 else 0.96 - 0.03 * (i - 13)),
                    y - 0.05 * u * u * (i > 9),
                    z + 0.05 * u * u * (i < 12),
                ]
                for u in across
            ]
            for i, (y, z) in enumerate(smooth)
        ]
    )
    under = grid - [0, 0, 0.008]
    parts: list[MeshPart] = [sheet(grid, shell), sheet(under[:, ::-1] + [0, 0.006, 0], shell)]
    for sx, sy in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
        top = [sx * 0.12, sy * 0.11, seat - 0.02]
        parts.append(tube([[sx * (width / 2 - 0.03), sy * (depth / 2 - 0.03), 0], top], [0.01, 0.014], legs))
    return ObjectMesh("chair", tuple(parts), colour)


def _resample(points: np.ndarray, count: int) -> np.ndarray:
    """Interpolate points (n, 2) by a Catmull-Rom spline, (count, 2)."""
    padded = np.concatenate([[2 * points[0] - points[1]], points, [2 * points[-1] - points[-2]]])
    result = []
    for place in np.linspace(0, len(points) - 1 - 1e-9, count):
        i, t = int(place), place % 1
        a, b, c, d = padded[i : i + 4]
        result.append(0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3))
    return np.array(result)


def couch(rng: np.random.Generator) -> ObjectMesh:
    """Build a couch for two or three with loose cushions."""
    seats = int(rng.choice([2, 3], p=[0.4, 0.6]))
    leather = rng.random() < 0.25
    colour, rgb = random_colour(
        rng, *(("black", "brown", "white") if leather else ("gray", "beige", "blue", "red", "green", "brown", "white"))
    )
    cloth = plain(rng, rgb, roughness=0.42) if leather else fabric(rng, rgb)
    arm, seat_width = rng.uniform(0.12, 0.24), rng.uniform(0.58, 0.70)
    width, depth = seats * seat_width + 2 * arm, rng.uniform(0.82, 0.95)
    foot, seat, back, arm_height = (
        rng.uniform(0.05, 0.13),
        rng.uniform(0.40, 0.45),
        rng.uniform(0.76, 0.88),
        rng.uniform(0.54, 0.64),
    )
    base = seat - 0.15
    legs = wood(rng, "dark") if rng.random() < 0.6 else metal(rng)
    parts = [
        cylinder(0.022, foot, [sx * (width / 2 - 0.07), sy * (depth / 2 - 0.07), 0], legs)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    parts.append(box([width - 2 * arm, depth - 0.02, base - foot], [0, 0, (base + foot) / 2], cloth, bevel=0.02))
    parts.append(
        box([width, 0.2, back - foot - 0.08], [0, depth / 2 - 0.1, (back - 0.08 + foot) / 2], cloth, bevel=0.05)
    )
    for sx in (-1, 1):
        parts.append(
            box(
                [arm, depth, arm_height - foot],
                [sx * (width - arm) / 2, 0, (arm_height + foot) / 2],
                cloth,
                bevel=0.045,
            )
        )
    tilt = rng.uniform(0.12, 0.25)
    for i in range(seats):
        x = (i - (seats - 1) / 2) * seat_width
        parts.append(
            ellipsoid([seat_width / 2, (depth - 0.2) / 2, 0.09], [x, -0.1, base + 0.082], cloth, squareness=0.28)
        )
        pillow = ellipsoid([seat_width / 2 - 0.01, 0.10, (back - seat) / 2 + 0.02], [0, 0, 0], cloth, squareness=0.42)
        parts.append(pillow.transformed([x, depth / 2 - 0.27, (seat + back) / 2 + 0.02], tilt=-tilt))
    for sx in (-1, 1):
        if rng.random() < 0.6:
            _, other = random_colour(rng, "white", "red", "blue", "yellow", "gray", "green", "orange")
            soft = (
                patterned(rng, "stripes", other, COLOURS["white"], roughness=0.9)
                if rng.random() < 0.4
                else fabric(rng, other)
            )
            cushion = ellipsoid([0.2, 0.075, 0.2], [0, 0, 0], soft, squareness=0.55)
            parts.append(
                cushion.transformed(
                    [sx * (width / 2 - arm - 0.22), -0.02, seat + 0.2], tilt=-0.45, turn=-sx * rng.uniform(0.1, 0.5)
                )
            )
    inside = SupportSurface(0, -0.15, width / 2 - arm - 0.25, 0.12, seat + 0.022, "seat")
    return ObjectMesh("couch", tuple(parts), colour, "leather" if leather else "", (inside,))


def bed(rng: np.random.Generator) -> ObjectMesh:
    """Build a made bed with pillows and a duvet that hangs over its sides in folds; the head is at +y."""
    double = rng.random() < 0.65
    width, length = (rng.uniform(1.4, 1.8) if double else rng.uniform(0.9, 1.1)), rng.uniform(2.0, 2.1)
    is_wooden = rng.random() < 0.6
    frame = wood(rng) if is_wooden else fabric(rng, random_colour(rng, "gray", "beige", "white", "black")[1])
    top, head = rng.uniform(0.48, 0.58), rng.uniform(0.85, 1.15)
    sheet_cloth = fabric(rng, jitter(rng, COLOURS["white"]), scale=0.5)
    colour, rgb = random_colour(rng, "white", "blue", "gray", "red", "green", "beige", "purple", "pink")
    duvet = fabric(rng, rgb, scale=0.5)
    if rng.random() < 0.4:
        duvet, colour = (patterned(rng, "stripes", rgb, jitter(rng, COLOURS["white"]), roughness=0.9), "")
    parts = [
        box([width + 0.08, 0.06, head], [0, length / 2 + 0.03, head / 2], frame, bevel=0.02),
        box([width + 0.06, length, 0.16], [0, 0, 0.22], frame, bevel=0.01),
        box([width, length - 0.02, top - 0.32], [0, 0, (top + 0.28) / 2], sheet_cloth, bevel=0.05),
    ]
    parts += [
        box([0.07, 0.07, 0.15], [sx * (width / 2 - 0.05), sy * (length / 2 - 0.1), 0.075], frame)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    count = 2 if double else 1
    for i in range(count):
        x = (i - (count - 1) / 2) * width / 2
        soft = fabric(rng, jitter(rng, COLOURS["white"]), scale=0.5) if rng.random() < 0.6 else duvet
        pillow = ellipsoid([min(0.36, width / count / 2 - 0.03), 0.22, 0.09], [0, 0, 0], soft, squareness=0.5)
        parts.append(
            pillow.transformed(
                [x, length / 2 - 0.27, top + 0.09], tilt=rng.uniform(0.1, 0.35), turn=rng.normal(0, 0.05)
            )
        )
    parts.append(_duvet(rng, width, length, top, duvet))
    flat = SupportSurface(0, -0.3, width / 2 - 0.25, length / 2 - 0.65, top + 0.075, "seat")
    return ObjectMesh("bed", tuple(parts), colour, "wooden" if is_wooden and not colour else "", (flat,))


def _duvet(rng: np.random.Generator, width: float, length: float, top: float, cloth: Material) -> MeshPart:
    """Build a duvet for a mattress whose upper side is at z = ``top``; sizes in metres."""
    drop = rng.uniform(0.16, 0.26)
    across = np.linspace(-width / 2 - drop, width / 2 + drop, 61)
    along = np.linspace(-length / 2 - drop * 0.8, length / 2 - 0.5, 61)
    x, y = np.meshgrid(across, along)
    wave = sum(
        rng.uniform(0.002, 0.007) * np.sin(rng.uniform(3, 14) * x + rng.uniform(3, 14) * y + rng.uniform(0, 6.28))
        for _ in range(7)
    )
    over_side, over_foot = np.maximum(np.abs(x) - width / 2, 0), np.maximum(-length / 2 - y, 0)
    hang = np.hypot(over_side, over_foot)
    folds = np.minimum(hang, 0.1) * 0.25 * np.sin(y * 23 + x * 19)
    z = top + 0.05 + wave - hang
    px = np.clip(x, -width / 2, width / 2) + np.sign(x) * (
        np.minimum(over_side, 0.05) * 0.8 + (over_side > 0) * (0.02 + np.abs(folds))
    )
    py = np.maximum(y, -length / 2) - np.minimum(over_foot, 0.05) * 0.8 - (over_foot > 0) * (0.02 + np.abs(folds))
    grid = np.stack([px, py, z], axis=2)
    # The upper edge lies on the sheet.
    grid[-1, :, 2] -= 0.045
    return sheet(grid, cloth)


def _random_finish(rng: np.random.Generator) -> tuple[Material, str, str]:
    """Sample a finish of kind or paint: the material, and the words for its colour and material (or "")."""
    if rng.random() < 0.7:
        kind = str(rng.choice(list(WOODS)))
        return wood(rng, kind), "brown" if kind in ("brown", "honey") else "", "wooden"
    colour, rgb = random_colour(rng, "white", "black", "gray")
    return plain(rng, rgb, roughness=0.35), colour, ""


def dining_table(rng: np.random.Generator) -> ObjectMesh:
    """Build a rectangular table on four legs or a round one on a pedestal."""
    top, colour, material = _random_finish(rng)
    height, thickness = rng.uniform(0.72, 0.77), rng.uniform(0.022, 0.045)
    if rng.random() < 0.25:
        radius = rng.uniform(0.48, 0.65)
        foot = metal(rng) if rng.random() < 0.5 else top
        column = lathe(
            lathe_profile(
                [radius * 0.5, radius * 0.5, 0.05, 0.04, 0.04, 0.12],
                [0, 0.02, 0.06, 0.3, height - thickness - 0.02, height - thickness],
            ),
            foot,
        )
        parts = [cylinder(radius, thickness, [0, 0, height - thickness], top), column]
        half = radius * 0.66
        return ObjectMesh("dining table", tuple(parts), colour, material, (SupportSurface(0, 0, half, half, height),))
    width, depth = rng.uniform(1.15, 1.8), rng.uniform(0.75, 0.95)
    legs = top if rng.random() < 0.7 else metal(rng)
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


def _legs(rng: np.random.Generator, width: float, depth: float, height: float, material: Material) -> list[MeshPart]:
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
    legs = metal(rng) if rng.random() < 0.3 else top
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
    steel = metal(rng)
    legs = top if rng.random() < 0.5 else painted(rng, "black", "white", "gray")
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
        parts.append(box([0.12, 0.018, 0.012], [x, -depth / 2 + 0.008, z + drawer_height * 0.25], steel))
    return ObjectMesh(
        "desk", tuple(parts), colour, material, (SupportSurface(0, 0, width / 2 - 0.03, depth / 2 - 0.03, height),)
    )


def cabinet(rng: np.random.Generator, *, low: bool = True) -> ObjectMesh:
    """Build a sideboard or, if not ``low``, a chest of drawers."""
    front, colour, material = _random_finish(rng)
    width = rng.uniform(1.2, 1.7) if low else rng.uniform(0.7, 1.0)
    depth, height, foot = rng.uniform(0.38, 0.48), (rng.uniform(0.42, 0.58) if low else rng.uniform(0.75, 1.0)), 0.08
    steel = metal(rng)
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
                cylinder(0.012, 0.025, [0, 0, 0], steel).transformed(
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
    steel = metal(rng)
    for z in (0.1 + (height - 0.1) * 0.27, 0.1 + (height - 0.1) * 0.73):
        parts.append(box([width - 0.03, 0.016, (height - 0.14) / 2], [0, -depth / 2 - 0.008, z], front))
        parts.append(box([0.1, 0.018, 0.012], [0, -depth / 2 - 0.025, z], steel))
    return ObjectMesh(
        "nightstand",
        tuple(parts),
        colour,
        material,
        (SupportSurface(0, 0, width / 2 - 0.02, depth / 2 - 0.02, height),),
    )


def bookshelf(rng: np.random.Generator) -> ObjectMesh:
    """Build a bookshelf with a back; every board is a surface."""
    finish, colour, material = _random_finish(rng)
    width, depth, height = rng.uniform(0.7, 1.0), rng.uniform(0.28, 0.34), rng.uniform(1.3, 1.95)
    boards = round(height / 0.36)
    parts = [box([width, 0.012, height], [0, depth / 2 - 0.006, height / 2], finish)]
    parts += [
        box([0.022, depth - 0.012, height], [sx * (width / 2 - 0.011), -0.006, height / 2], finish) for sx in (-1, 1)
    ]
    surfaces = []
    for i in range(boards + 1):
        z = 0.05 + (height - 0.062) * i / boards
        parts.append(box([width - 0.046, depth - 0.014, 0.022], [0, -0.006, z], finish))
        surfaces.append(
            SupportSurface(0, -0.006, width / 2 - 0.03, depth / 2 - 0.02, z + 0.011, "shelf" if i < boards else "top")
        )
    return ObjectMesh("shelf", tuple(parts), colour, material, tuple(surfaces))
