"""Camera of the simulated robot: a pinhole, and the conversion of linear light to a photograph."""

from dataclasses import dataclass

import cv2
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


@dataclass(frozen=True)
class CameraResponse:
    """Photometric properties of a camera; the defaults are an ideal camera with automatic exposure."""

    exposure: float = 0.0
    """Offset from the automatic exposure in stops."""
    red: float = 1.0
    """Gain of white balance relative to green."""
    blue: float = 1.0
    """Gain of white balance relative to green."""
    blur: float = 0.0
    """Standard deviation of the lens blur in pixels."""
    noise: float = 0.0
    """Standard deviation of the sensor noise in mid-grey as a share of white."""
    contrast: float = 1.0
    """Exponent on the tone-mapped values."""


def random_response(rng: np.random.Generator) -> CameraResponse:
    """Sample a plausible camera."""
    return CameraResponse(
        exposure=float(rng.normal(0, 0.3)),
        red=float(np.exp(rng.normal(0, 0.05))),
        blue=float(np.exp(rng.normal(0, 0.07))),
        blur=float(abs(rng.normal(0, 0.45))),
        noise=float(abs(rng.normal(0, 0.008))),
        contrast=float(rng.uniform(0.9, 1.12)),
    )


def photograph(light: NDArray[np.float32], response: CameraResponse, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Convert linear light to a photograph.

    Args:
        light: linear RGB, (H, W, 3), not negative.
        response: properties of the camera.
        rng: source of the sensor noise.

    Returns:
        BGR, uint8, (H, W, 3).
    """
    gain = np.float32(_automatic_gain(light) * 2**response.exposure)
    exposed = light * gain * np.array([response.red, 1.0, response.blue], np.float32)
    if response.blur > 0.1:
        exposed = cv2.GaussianBlur(exposed, (0, 0), response.blur)
    if response.noise > 0:
        # Shot noise grows with the square root of the light; read noise is constant.
        deviation = response.noise * np.sqrt(np.clip(exposed, 0, 1) / 0.18 + 0.15)
        exposed = exposed + rng.standard_normal(exposed.shape, dtype=np.float32) * deviation.astype(np.float32)
    toned = _tone_map(np.maximum(exposed, 0)) ** response.contrast
    return np.ascontiguousarray((np.clip(toned, 0, 1) * 255 + 0.5).astype(np.uint8)[..., ::-1])


def _automatic_gain(light: NDArray[np.float32]) -> float:
    """Return the gain of a camera's automatic exposure for linear RGB light (H, W, 3)."""
    luminance = light @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    mean = float(np.exp(np.mean(np.log(np.maximum(luminance, 1e-4)))))
    bright = float(np.percentile(luminance, 90))
    # The geometric mean exposes for the room instead of the window; the percentile keeps pale rooms from clipping.
    return float(min(0.17 / mean, 0.75 / max(bright, 1e-4)))


def _tone_map(light: NDArray[np.float32]) -> NDArray[np.float32]:
    """Apply the sRGB curve with a soft shoulder, which keeps detail in windows and lamps."""
    knee = np.float32(0.6)
    over = np.maximum(light - knee, 0)
    rolled = np.where(light < knee, light, knee + (1 - knee) * (1 - np.exp(-over / (1 - knee))))
    return np.where(rolled <= 0.0031308, 12.92 * rolled, 1.055 * np.maximum(rolled, 1e-6) ** (1 / 2.4) - 0.055)
