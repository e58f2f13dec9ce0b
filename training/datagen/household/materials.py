"""What surfaces look like, as plain values; ``blender.py`` makes shader nodes of them."""

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

# sRGB, 0 to 1. A colour's word is what captions call it, so each is well inside what people give that name.
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
WOODS: dict[str, RGB] = {
    "light": (0.72, 0.54, 0.35),
    "honey": (0.62, 0.40, 0.20),
    "brown": (0.40, 0.25, 0.14),
    "dark": (0.20, 0.12, 0.08),
}


@dataclass(frozen=True)
class Material:
    """A surface. Colours are sRGB, 0 to 1."""

    texture: Texture
    rgb: RGB
    second: RGB | None = None
    """The other colour of a pattern: grain, grout, stripes."""
    roughness: float = 0.5
    metallic: float = 0.0
    scale: float = 1.0
    """Size of the texture, 1 as usual."""
    emission: float = 0.0
    """Brightness of a surface that shines by itself, in watts per square metre and steradian."""
    seed: int = 0
    """Where in the texture the surface lies."""

    def lit(self, emission: float) -> "Material":
        return replace(self, emission=emission)


def jitter(rng: np.random.Generator, rgb: RGB, amount: float = 0.03) -> RGB:
    """A colour close by, which still has the same name."""
    hue, saturation, value = colorsys.rgb_to_hsv(*rgb)
    hue = (hue + rng.normal(0, amount / 5)) % 1.0
    saturation = float(np.clip(saturation * (1 + rng.normal(0, 2 * amount)), 0, 1))
    value = float(np.clip(value * (1 + rng.normal(0, 2 * amount)), 0.01, 0.97))
    return colorsys.hsv_to_rgb(hue, saturation, value)


def coloured(rng: np.random.Generator, *names: str) -> tuple[str, RGB]:
    """One of the named colours: its word and a shade of it."""
    name = str(rng.choice(names))
    return name, jitter(rng, COLOURS[name])


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(10_000))


def plain(rng: np.random.Generator, rgb: RGB, *, roughness: float = 0.45) -> Material:
    """Paint, plastic or glazed ceramic."""
    return Material("plain", rgb, roughness=float(np.clip(roughness + rng.normal(0, 0.06), 0.05, 1)), seed=_seed(rng))


def wood(rng: np.random.Generator, name: str | None = None) -> Material:
    rgb = jitter(rng, WOODS[name or str(rng.choice(list(WOODS)))])
    dark = (rgb[0] * 0.62, rgb[1] * 0.58, rgb[2] * 0.55)
    return Material(
        "wood", rgb, dark, roughness=float(rng.uniform(0.25, 0.55)), scale=float(rng.uniform(0.7, 1.4)), seed=_seed(rng)
    )


def fabric(rng: np.random.Generator, rgb: RGB, *, scale: float = 1.0) -> Material:
    return Material("fabric", rgb, roughness=0.9, scale=scale, seed=_seed(rng))


def metal(rng: np.random.Generator, *, brushed: bool = False) -> Material:
    shade = float(rng.uniform(0.55, 0.75))
    texture: Texture = "brushed" if brushed else "plain"
    return Material(
        texture, (shade, shade, shade * 1.01), roughness=float(rng.uniform(0.12, 0.3)), metallic=1.0, seed=_seed(rng)
    )


def glass(rng: np.random.Generator, rgb: RGB = (0.97, 0.99, 0.98)) -> Material:
    return Material("glass", rgb, roughness=0.0, seed=_seed(rng))


def patterned(
    rng: np.random.Generator, texture: Texture, rgb: RGB, second: RGB, *, roughness: float = 0.5, scale: float = 1.0
) -> Material:
    return Material(texture, rgb, second, roughness=roughness, scale=scale, seed=_seed(rng))
