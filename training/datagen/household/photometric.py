"""From linear light to a photograph: exposure, white balance, blur, noise and tone curve, randomised a sequence."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Look:
    """How the camera saw a frame; the defaults are a good camera on automatic."""

    exposure: float = 0.0
    """Stops off what the automatic would choose."""
    red: float = 1.0
    blue: float = 1.0
    """Gains of white balance, green being 1."""
    blur: float = 0.0
    """Standard deviation of the lens' blur in pixels."""
    noise: float = 0.0
    """Standard deviation of the sensor's noise in mid grey, as a share of white."""
    contrast: float = 1.0


def automatic_exposure(light: NDArray[np.float32]) -> float:
    """The gain that puts a frame's middle brightness where a camera would."""
    luminance = light @ np.array([0.2126, 0.7152, 0.0722], np.float32)
    middle = float(np.exp(np.mean(np.log(np.maximum(luminance, 1e-4)))))
    bright = float(np.percentile(luminance, 90))
    # The geometric mean exposes the room, not the window; the percentile keeps pale rooms from washing out.
    return float(min(0.17 / middle, 0.75 / max(bright, 1e-4)))


def random_look(rng: np.random.Generator) -> Look:
    """A sequence's camera: each differs, none is broken."""
    return Look(
        exposure=float(rng.normal(0, 0.3)),
        red=float(np.exp(rng.normal(0, 0.05))),
        blue=float(np.exp(rng.normal(0, 0.07))),
        blur=float(abs(rng.normal(0, 0.45))),
        noise=float(abs(rng.normal(0, 0.008))),
        contrast=float(rng.uniform(0.9, 1.12)),
    )


def develop(
    light: NDArray[np.float32], look: Look, rng: np.random.Generator, *, gain: float | None = None
) -> NDArray[np.uint8]:
    """A photograph of a frame.

    Args:
        light: (height, width, 3) linear RGB.
        look: the camera's.
        rng: of the noise.
        gain: exposure; the frame's own automatic one where there is none.

    Returns:
        uint8 (height, width, 3), BGR.
    """
    gain = automatic_exposure(light) if gain is None else gain
    exposed = light * np.float32(gain * 2**look.exposure) * np.array([look.red, 1.0, look.blue], np.float32)
    if look.blur > 0.1:
        exposed = cv2.GaussianBlur(exposed, (0, 0), look.blur)
    if look.noise > 0:
        # Of photons, which grows with the root of the light, and of reading, which does not.
        spread = look.noise * np.sqrt(np.clip(exposed, 0, 1) / 0.18 + 0.15)
        exposed = exposed + rng.standard_normal(exposed.shape, dtype=np.float32) * spread.astype(np.float32)
    toned = _tone(np.maximum(exposed, 0)) ** look.contrast
    return np.ascontiguousarray((np.clip(toned, 0, 1) * 255 + 0.5).astype(np.uint8)[..., ::-1])


def _tone(light: NDArray[np.float32]) -> NDArray[np.float32]:
    """sRGB's curve with a shoulder, so that windows and lamps keep some of their shape."""
    knee = np.float32(0.6)
    over = np.maximum(light - knee, 0)
    rolled = np.where(light < knee, light, knee + (1 - knee) * (1 - np.exp(-over / (1 - knee))))
    return np.where(rolled <= 0.0031308, 12.92 * rolled, 1.055 * np.maximum(rolled, 1e-6) ** (1 / 2.4) - 0.055)
