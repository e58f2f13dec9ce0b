"""Upright bounding boxes that are turned about z, and how deep they intersect."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulation.household.mesh import Points, rotate_z


@dataclass(frozen=True)
class ObjectPose:
    """Position and heading of an object in the room."""

    x: float
    """Metres, as are ``y`` and ``z``."""
    y: float
    z: float = 0.0
    yaw: float = 0.0
    """Rotation about z in radians, counter-clockwise seen from above."""

    @property
    def position(self) -> NDArray[np.float64]:
        """x, y and z in metres, (3,)."""
        return np.array([self.x, self.y, self.z])

    def to_world(self, points: Points) -> Points:
        """Transform points (n, 3) from the object's frame to the room's."""
        return rotate_z(points, self.yaw) + self.position


@dataclass(frozen=True)
class OrientedBoxes:
    """Boxes of one object, turned about z by the same angle; metres in the room's frame."""

    centres: NDArray[np.float64]
    """(n, 3)."""
    half_sizes: NDArray[np.float64]
    """Half the extents along the turned axes, (n, 3)."""
    yaw: float
    """Radians."""

    @classmethod
    def from_bounds(cls, bounds: NDArray[np.float64], pose: ObjectPose) -> "OrientedBoxes":
        """Place boxes given by their minimum and maximum corners (n, 2, 3) in the object's frame."""
        return cls(pose.to_world(bounds.mean(axis=1)), (bounds[:, 1] - bounds[:, 0]) / 2, pose.yaw)

    def axis_aligned_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the minimum and the maximum x, y, z of all boxes along the room's axes, (3,) each."""
        cos, sin = abs(np.cos(self.yaw)), abs(np.sin(self.yaw))
        reach = np.column_stack(
            [
                cos * self.half_sizes[:, 0] + sin * self.half_sizes[:, 1],
                sin * self.half_sizes[:, 0] + cos * self.half_sizes[:, 1],
                self.half_sizes[:, 2],
            ]
        )
        return (self.centres - reach).min(axis=0), (self.centres + reach).max(axis=0)

    def penetration_depth(self, other: "OrientedBoxes") -> float:
        """Return the largest depth in metres by which a box intersects a box of ``other``; 0 or less if none does.

        Separating axes: z and the two horizontal axes of either object.
        """
        offsets = other.centres[None] - self.centres[:, None]
        depth = self.half_sizes[:, None, 2] + other.half_sizes[None, :, 2] - np.abs(offsets[..., 2])
        turn = other.yaw - self.yaw
        cos, sin = abs(np.cos(turn)), abs(np.sin(turn))
        for first, second, yaw in (
            (self.half_sizes[:, None], other.half_sizes[None], self.yaw),
            (other.half_sizes[None], self.half_sizes[:, None], other.yaw),
        ):
            along = offsets[..., 0] * np.cos(yaw) + offsets[..., 1] * np.sin(yaw)
            across = -offsets[..., 0] * np.sin(yaw) + offsets[..., 1] * np.cos(yaw)
            depth = np.minimum(depth, first[..., 0] + cos * second[..., 0] + sin * second[..., 1] - np.abs(along))
            depth = np.minimum(depth, first[..., 1] + sin * second[..., 0] + cos * second[..., 1] - np.abs(across))
        return float(depth.max())
