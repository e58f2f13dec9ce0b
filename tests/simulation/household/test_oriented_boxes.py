"""Bounds and penetration depth of turned boxes."""

import numpy as np
import pytest

from simulation.household.oriented_boxes import ObjectPose, OrientedBoxes


def cube(x: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> OrientedBoxes:
    return OrientedBoxes.from_bounds(np.array([[[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]]]), ObjectPose(x, 0.0, z, yaw))


def test_penetration_depth_of_turned_boxes_follows_from_their_geometry() -> None:
    # Half a side and half a diagonal add up to 1.207.
    assert cube().penetration_depth(cube(1.1, yaw=np.pi / 4)) == pytest.approx(0.5 + np.sqrt(0.5) - 1.1)
    assert cube().penetration_depth(cube(1.3, yaw=np.pi / 4)) < 0
    assert cube().penetration_depth(cube(z=1.0, yaw=np.pi / 4)) == pytest.approx(0)


def test_axis_aligned_bounds_enclose_the_turned_box() -> None:
    low, high = cube(2.0, yaw=np.pi / 4).axis_aligned_bounds()
    assert low == pytest.approx([2 - np.sqrt(0.5), -np.sqrt(0.5), 0])
    assert high == pytest.approx([2 + np.sqrt(0.5), np.sqrt(0.5), 1])
