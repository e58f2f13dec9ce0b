"""Lighting of a scene: sun and sky by day, lamps by night."""

from dataclasses import dataclass

import numpy as np

from simulation.household.materials import RGB


@dataclass(frozen=True)
class Lighting:
    """Light sources of a scene; colours are sRGB, 0 to 1."""

    day: bool
    sky: RGB
    sky_strength: float
    """Radiance of the sky in watts per square metre and steradian."""
    sun_strength: float
    """Irradiance by the sun in watts per square metre; 0 on a cloudy day and at night."""
    sun_elevation: float
    """Angle above the horizon in radians."""
    sun_azimuth: float
    """Angle from north (+y) towards east in radians."""
    lamps_on: bool
    """Whether the ceiling lamps are on."""
    lamp_tint: RGB
    lamp_strength: float
    """Radiance of a ceiling lamp's surface in watts per square metre and steradian."""


def random_daylight(rng: np.random.Generator) -> Lighting:
    """Sample a clear or cloudy day; the ceiling lamps are on in a quarter of the scenes."""
    cloudy = rng.random() < 0.45
    sky = (0.86, 0.90, 0.95) if cloudy else (0.62, 0.78, 0.98)
    return Lighting(
        day=True,
        sky=sky,
        sky_strength=float(rng.uniform(9, 14) if cloudy else rng.uniform(7, 11)),
        sun_strength=0.0 if cloudy else float(rng.uniform(25, 50)),
        sun_elevation=float(rng.uniform(0.45, 1.0)),
        sun_azimuth=float(rng.uniform(0, 2 * np.pi)),
        lamps_on=bool(rng.random() < 0.25),
        lamp_tint=_random_lamp_tint(rng),
        lamp_strength=float(rng.uniform(25, 40)),
    )


def random_night_lighting(rng: np.random.Generator) -> Lighting:
    """Sample a night: the ceiling lamps are on and the sky is almost black."""
    return Lighting(
        day=False,
        sky=(0.10, 0.13, 0.25),
        sky_strength=0.02,
        sun_strength=0.0,
        sun_elevation=0.5,
        sun_azimuth=0.0,
        lamps_on=True,
        lamp_tint=_random_lamp_tint(rng),
        lamp_strength=float(rng.uniform(25, 40)),
    )


def _random_lamp_tint(rng: np.random.Generator) -> RGB:
    """Sample a white between that of a warm bulb and that of a neutral tube."""
    warmth = float(rng.uniform(0, 1))
    return (1.0, 0.96 - 0.13 * warmth, 0.90 - 0.30 * warmth)
