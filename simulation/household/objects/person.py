"""A simple human figure in plain clothes; the renderer fuses its overlapping limbs by remeshing."""

import numpy as np

from simulation.household.materials import Material, fabric, jitter, painted, patterned, plain, random_colour
from simulation.household.mesh import MeshPart, ObjectMesh, ellipsoid, join, tube

_SKIN = ((0.88, 0.68, 0.56), (0.76, 0.55, 0.42), (0.55, 0.36, 0.25), (0.33, 0.21, 0.15))
_HAIR = ((0.05, 0.04, 0.03), (0.22, 0.13, 0.07), (0.55, 0.40, 0.20), (0.45, 0.44, 0.43))


def standing_person(rng: np.random.Generator) -> ObjectMesh:
    """Build a standing person who faces -y, each arm hanging or bent."""
    height = rng.uniform(1.58, 1.85)
    scale = height / 1.75
    skin = patterned(rng, "skin", jitter(rng, _SKIN[int(rng.integers(len(_SKIN)))]), (0.6, 0.2, 0.15), roughness=0.5)
    hair = plain(rng, jitter(rng, _HAIR[int(rng.integers(len(_HAIR)))]), roughness=0.6)
    colour, rgb = random_colour(rng, "white", "black", "red", "blue", "green", "gray", "yellow", "pink")
    top = fabric(rng, rgb)
    trousers = fabric(rng, random_colour(rng, "blue", "black", "gray", "brown", "beige")[1])
    shoes = painted(rng, "black", "white", "brown", roughness=0.5)
    long_sleeves, build = rng.random() < 0.5, rng.uniform(0.92, 1.12)

    def limb(points: list[list[float]], radii: list[float], material: Material) -> MeshPart:
        """Build a smooth limb through points at height 1.75 m."""
        t, fine = np.arange(len(points)), np.linspace(0, len(points) - 1, 10)
        path = np.column_stack([np.interp(fine, t, np.array(points)[:, k]) for k in range(3)])
        return tube(path * scale, np.interp(fine, t, radii) * scale, material, segments=14)

    def blob(radii: list[float], centre: list[float], material: Material, squareness: float = 1.0) -> MeshPart:
        return ellipsoid(np.array(radii) * scale, np.array(centre) * scale, material, squareness=squareness)

    legs, feet, arms, hands = [], [], [], []
    for side in (-1, 1):
        step = rng.normal(0, 0.035)
        foot_x, knee_x, hip_x = side * 0.11 * build, side * 0.105 * build, side * 0.09 * build
        legs.append(
            limb(
                [[foot_x, step, 0.09], [knee_x, step * 0.3 - 0.02, 0.50], [hip_x, 0, 0.90]],
                [0.055, 0.068, 0.095],
                trousers,
            )
        )
        feet.append(blob([0.045, 0.125, 0.042], [foot_x, step - 0.055, 0.042], shoes, 0.75))
        bent = rng.random() < 0.35
        shoulder, elbow = [side * 0.195 * build, 0.01, 1.40], [side * 0.265 * build, 0.03, 1.12]
        wrist = [side * 0.16, -0.24, 1.10] if bent else [side * 0.275 * build, -0.05, 0.87]
        sleeve = (
            limb([shoulder, elbow, wrist], [0.062, 0.05, 0.04], top)
            if long_sleeves
            else limb([shoulder, elbow], [0.064, 0.056], top)
        )
        arms += [sleeve, blob([0.068, 0.07, 0.068], shoulder, top)]
        if not long_sleeves:
            hands.append(limb([elbow, wrist], [0.042, 0.029], skin))
        direction = np.array([-0.25 * side, -1, 0]) if bent else np.array([0, -0.15, -1])
        palm = np.array(wrist) + direction / np.linalg.norm(direction) * 0.07
        hands.append(blob([0.03, 0.035, 0.035] if bent else [0.022, 0.042, 0.075], list(palm), skin, 0.8))
    torso = [
        blob([0.165 * build, 0.105, 0.16], [0, 0, 0.98], top, 0.8),
        blob([0.155 * build, 0.10, 0.17], [0, 0, 1.13], top, 0.85),
        blob([0.19 * build, 0.115, 0.17], [0, 0.005, 1.30], top, 0.85),
        limb([[-0.17 * build, 0.01, 1.415], [0, 0.015, 1.44], [0.17 * build, 0.01, 1.415]], [0.06, 0.065, 0.06], top),
    ]
    hips = [blob([0.165 * build, 0.11, 0.12], [0, 0.005, 0.90], trousers, 0.85)]
    head = [
        blob([0.075, 0.095, 0.115], [0, -0.005, 1.635], skin, 0.95),
        blob([0.055, 0.05, 0.05], [0, -0.045, 1.565], skin),
        limb([[0, 0.015, 1.44], [0, 0.005, 1.56]], [0.056, 0.05], skin),
        blob([0.013, 0.018, 0.022], [0, -0.105, 1.615], skin),
        *[blob([0.012, 0.022, 0.032], [sx * 0.077, 0.005, 1.625], skin) for sx in (-1, 1)],
    ]
    cap = [blob([0.083, 0.1, 0.095], [0, 0.018, 1.672], hair)]
    if rng.random() < 0.5:
        cap.append(blob([0.088, 0.06, 0.16], [0, 0.055, 1.59], hair, 0.85))
    dark = plain(rng, (0.03, 0.02, 0.02))
    eyes = [blob([0.011, 0.006, 0.007], [sx * 0.032, -0.094, 1.645], dark) for sx in (-1, 1)]
    brows = [blob([0.018, 0.006, 0.004], [sx * 0.032, -0.093, 1.667], hair) for sx in (-1, 1)]
    mouth = blob([0.024, 0.006, 0.006], [0, -0.093, 1.572], plain(rng, (0.55, 0.22, 0.2)))
    voxel = 0.013 * scale
    parts = [
        join([*torso, *arms], remesh=voxel),
        join([*hips, *legs], remesh=voxel),
        join(head, remesh=voxel * 0.7),
        join(cap, remesh=voxel),
        join(hands, remesh=voxel * 0.7),
        join(feet, remesh=voxel),
        join(eyes),
        join(brows),
        mouth,
    ]
    return ObjectMesh("person", tuple(parts), colour)
