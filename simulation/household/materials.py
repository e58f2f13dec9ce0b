"""Appearance of surfaces, independent of the renderer; ``blender/materials.py`` turns it into shader nodes."""

import colorsys
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

RGB = tuple[float, float, float]

Texture = Literal[
    "plain",
    "wood",
    "fabric",
    "stone",
    "tiles",
    "planks",
    "plaster",
    "brushed",
    "glass",
    "foliage",
    "skin",
    "fruit",
    "stripes",
    "picture",
    "view",
    "screen",
]

COLOURS: dict[str, RGB] = {
    "white": (0.90, 0.89, 0.87),
    "black": (0.05, 0.05, 0.055),
    "gray": (0.47, 0.47, 0.48),
    "brown": (0.36, 0.22, 0.13),
    "red": (0.66, 0.08, 0.07),
    "blue": (0.12, 0.25, 0.58),
    "green": (0.17, 0.42, 0.18),
    "yellow": (0.88, 0.72, 0.14),
    "orange": (0.88, 0.43, 0.08),
    "pink": (0.86, 0.52, 0.60),
    "purple": (0.38, 0.18, 0.48),
    "beige": (0.80, 0.72, 0.58),
    "silver": (0.68, 0.68, 0.69),
}
"""Colours by the name that captions give them, sRGB from 0 to 1; each is a typical example of its name."""
WOODS: dict[str, RGB] = {
    "light": (0.72, 0.54, 0.35),
    "honey": (0.62, 0.40, 0.20),
    "brown": (0.40, 0.25, 0.14),
    "dark": (0.20, 0.12, 0.08),
}
"""Colours of woods, sRGB from 0 to 1."""


@dataclass(frozen=True)
class Material:
    """Colour, texture and reflectance of a surface; colours are sRGB from 0 to 1."""

    texture: Texture
    rgb: RGB
    second_rgb: RGB | None = None
    """Second colour of a pattern, such as grain, grout or stripes; None for a darker shade of ``rgb``."""
    roughness: float = 0.5
    """From 0, a mirror, to 1, matt."""
    metallic: float = 0.0
    """0 for a dielectric, 1 for a metal."""
    scale: float = 1.0
    """Size of the texture relative to its default; side length in metres for ``tiles``."""
    emission: float = 0.0
    """Radiance that the surface emits in watts per square metre and steradian."""
    seed: int = 0
    """Offset into the procedural texture."""

    def emitting(self, emission: float) -> "Material":
        """Return the material with a radiance in watts per square metre and steradian."""
        return replace(self, emission=emission)


def jitter(rng: np.random.Generator, rgb: RGB, amount: float = 0.03) -> RGB:
    """Sample a similar colour that captions still give the same name."""
    hue, saturation, value = colorsys.rgb_to_hsv(*rgb)
    hue = (hue + rng.normal(0, amount / 5)) % 1.0
    saturation = float(np.clip(saturation * (1 + rng.normal(0, 2 * amount)), 0, 1))
    value = float(np.clip(value * (1 + rng.normal(0, 2 * amount)), 0.01, 0.97))
    return colorsys.hsv_to_rgb(hue, saturation, value)


def random_colour(rng: np.random.Generator, *names: str) -> tuple[str, RGB]:
    """Sample one of the named colours: its name and a shade of it."""
    name = str(rng.choice(names))
    return name, jitter(rng, COLOURS[name])


def scaled(rgb: RGB, factors: RGB) -> RGB:
    """Multiply each channel of a colour by its factor."""
    return rgb[0] * factors[0], rgb[1] * factors[1], rgb[2] * factors[2]


def lightened(rgb: RGB, share: float) -> RGB:
    """Mix a colour with a share, 0 to 1, of off-white."""
    r, g, b = (c * (1 - share) + 0.91 * share for c in rgb)
    return r, g, b


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(10_000))


def plain(rng: np.random.Generator, rgb: RGB, *, roughness: float = 0.45) -> Material:
    """Sample paint, plastic or glazed ceramic of a colour."""
    return Material("plain", rgb, roughness=float(np.clip(roughness + rng.normal(0, 0.06), 0.05, 1)), seed=_seed(rng))


def painted(rng: np.random.Generator, *names: str, roughness: float = 0.45) -> Material:
    """Sample paint, plastic or glazed ceramic of one of the named colours."""
    return plain(rng, random_colour(rng, *names)[1], roughness=roughness)


def wood(rng: np.random.Generator, name: str | None = None) -> Material:
    """Sample a wood: the named one or any."""
    rgb = jitter(rng, WOODS[name or str(rng.choice(list(WOODS)))])
    grain = scaled(rgb, (0.62, 0.58, 0.55))
    return Material(
        "wood",
        rgb,
        grain,
        roughness=float(rng.uniform(0.25, 0.55)),
        scale=float(rng.uniform(0.7, 1.4)),
        seed=_seed(rng),
    )


def fabric(rng: np.random.Generator, rgb: RGB, *, scale: float = 1.0) -> Material:
    """Sample a woven fabric of a colour."""
    return Material("fabric", rgb, roughness=0.9, scale=scale, seed=_seed(rng))


def metal(rng: np.random.Generator, *, brushed: bool = False) -> Material:
    """Sample polished or brushed steel."""
    shade = float(rng.uniform(0.55, 0.75))
    texture: Texture = "brushed" if brushed else "plain"
    return Material(
        texture, (shade, shade, shade * 1.01), roughness=float(rng.uniform(0.12, 0.3)), metallic=1.0, seed=_seed(rng)
    )


def glass(rng: np.random.Generator, rgb: RGB = (0.97, 0.99, 0.98)) -> Material:
    """Sample clear glass of a tint."""
    return Material("glass", rgb, roughness=0.0, seed=_seed(rng))


def patterned(
    rng: np.random.Generator, texture: Texture, rgb: RGB, second_rgb: RGB, *, roughness: float = 0.5, scale: float = 1.0
) -> Material:
    """Sample a surface with a texture of two colours."""
    return Material(texture, rgb, second_rgb, roughness=roughness, scale=scale, seed=_seed(rng))
