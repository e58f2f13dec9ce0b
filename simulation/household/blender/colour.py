"""Colours as Blender takes them: linear RGB."""

from simulation.household.materials import RGB


def linear(rgb: RGB) -> RGB:
    """Convert sRGB from 0 to 1 to linear RGB."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return r, g, b


def rgba(rgb: RGB) -> tuple[float, float, float, float]:
    """Convert sRGB from 0 to 1 to opaque linear RGBA."""
    return (*linear(rgb), 1.0)
