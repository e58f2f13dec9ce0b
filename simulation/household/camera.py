"""Pinhole camera of the simulated robot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulation.household.mesh import Points

NEAR = 0.05
"""Distance in metres of the near plane."""


@dataclass(frozen=True)
class CameraPose:
    """Position and viewing direction of the camera in the room."""

    x: float
    """Metres, as are ``y`` and ``z``."""
    y: float
    z: float
    heading: float
    """Radians, counter-clockwise from +x seen from above."""
    pitch: float
    """Radians, positive upwards."""


@dataclass(frozen=True)
class Camera:
    """Intrinsics; sizes in pixels."""

    width: int
    height: int
    field_of_view: float = np.deg2rad(66.0)
    """Horizontal, in radians."""

    @property
    def focal_length(self) -> float:
        """Pixels."""
        return float(self.width / 2 / np.tan(self.field_of_view / 2))

    def to_camera(self, pose: CameraPose, points: Points) -> Points:
        """Transform points (n, 3) from the room's frame to the camera's: x right, y down, z forward, in metres."""
        ch, sh, cp, sp = np.cos(pose.heading), np.sin(pose.heading), np.cos(pose.pitch), np.sin(pose.pitch)
        right, forward = np.array([sh, -ch, 0.0]), np.array([ch * cp, sh * cp, sp])
        down = np.cross(forward, right)
        return (points - [pose.x, pose.y, pose.z]) @ np.stack([right, down, forward], axis=1)

    def project(self, pose: CameraPose, points: Points) -> NDArray[np.float64]:
        """Project points (n, 3) of the room to pixels (n, 2); a depth below ``NEAR`` is taken as ``NEAR``."""
        in_camera = self.to_camera(pose, points)
        depth = np.maximum(in_camera[:, 2], NEAR)
        return in_camera[:, :2] / depth[:, None] * self.focal_length + [self.width / 2, self.height / 2]
