"""The robot's camera: where it is, which way it looks, and where a point of the room lands in the picture."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.datagen.household.mesh import Points

NEAR = 0.05
"""Metres in front of the camera from where on things are seen."""


@dataclass(frozen=True)
class Pose:
    """Where the camera is in the room."""

    x: float
    y: float
    z: float
    heading: float
    """Radians, counter-clockwise from +x as seen from above."""
    pitch: float
    """Radians, upwards."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera."""

    width: int
    height: int
    field_of_view: float = np.deg2rad(66.0)
    """Horizontal, in radians."""

    @property
    def focal_length(self) -> float:
        """In pixels."""
        return float(self.width / 2 / np.tan(self.field_of_view / 2))

    def to_view(self, pose: Pose, points: Points) -> Points:
        """World points (n, 3) as metres to the right of, below and in front of the camera."""
        ch, sh, cp, sp = np.cos(pose.heading), np.sin(pose.heading), np.cos(pose.pitch), np.sin(pose.pitch)
        right, forward = np.array([sh, -ch, 0.0]), np.array([ch * cp, sh * cp, sp])
        down = np.cross(forward, right)
        return (points - [pose.x, pose.y, pose.z]) @ np.stack([right, down, forward], axis=1)

    def project(self, pose: Pose, points: Points) -> NDArray[np.float64]:
        """Pixels (n, 2) of world points (n, 3); points behind the camera are pulled up to ``NEAR`` in front of it."""
        view = self.to_view(pose, points)
        depth = np.maximum(view[:, 2], NEAR)
        return view[:, :2] / depth[:, None] * self.focal_length + [self.width / 2, self.height / 2]
