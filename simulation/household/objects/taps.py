"""Taps of sinks, washbasins and bathtubs."""

import numpy as np

from simulation.household import materials
from simulation.household.mesh import MeshPart, cylinder, tube


def tap(chrome: materials.Material, base: list[float], height: float, reach: float) -> list[MeshPart]:
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
