"""The light of a scene: sun and sky by day, lamps by night; plain values for the renderer."""

from dataclasses import dataclass

import numpy as np

from training.datagen.household.materials import RGB


@dataclass(frozen=True)
class Lighting:
    """What shines."""

    day: bool
    sky: RGB
    sky_strength: float
    """Radiance of the sky, in watts per square metre and steradian."""
    sun_strength: float
    """Irradiance by the sun in watts per square metre; 0 behind clouds and at night."""
    sun_elevation: float
    """Radians above the horizon."""
    sun_azimuth: float
    """Radians from north (+y), eastwards."""
    lamps_on: bool
    lamp_tint: RGB
    lamp_strength: float
    """Radiance of the ceiling lamps' surface."""


def day_light(rng: np.random.Generator) -> Lighting:
    """A bright or cloudy day; now and then somebody left the lamp on."""
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
        lamp_tint=_lamp_tint(rng),
        lamp_strength=float(rng.uniform(25, 40)),
    )


def night_light(rng: np.random.Generator) -> Lighting:
    """Lamps alone, before black windows."""
    return Lighting(
        day=False,
        sky=(0.10, 0.13, 0.25),
        sky_strength=0.02,
        sun_strength=0.0,
        sun_elevation=0.5,
        sun_azimuth=0.0,
        lamps_on=True,
        lamp_tint=_lamp_tint(rng),
        lamp_strength=float(rng.uniform(25, 40)),
    )


def _lamp_tint(rng: np.random.Generator) -> RGB:
    """From a warm bulb's to a neutral tube's white."""
    warmth = float(rng.uniform(0, 1))
    return (1.0, 0.96 - 0.13 * warmth, 0.90 - 0.30 * warmth)
