"""Colours of the overlay, and functions that compute colours from probabilities."""

Rgb = tuple[int, int, int]

BACKGROUND: Rgb = (20, 22, 27)
BAR_TRACK: Rgb = (58, 62, 70)
FAINT: Rgb = (146, 152, 163)
WHITE: Rgb = (245, 246, 248)
DARK: Rgb = (12, 13, 16)
UNNAMED_OBJECT: Rgb = (164, 167, 172)
HIGHLIGHTS: tuple[Rgb, ...] = (
    (98, 190, 255),
    (255, 184, 77),
    (255, 134, 190),
    (150, 226, 116),
    (190, 166, 255),
    (250, 236, 120),
)

_LOW, _MIDDLE, _HIGH = (236, 92, 86), (244, 186, 72), (94, 204, 136)


def mix(first: Rgb, second: Rgb, share: float) -> Rgb:
    """Interpolate linearly between two colours; `share` is the weight of the second, 0 to 1."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def confidence_colour(probability: float) -> Rgb:
    """Return the colour of a probability from 0 (red) through 0.5 (yellow) to 1 (green)."""
    if probability < 0.5:
        return mix(_LOW, _MIDDLE, 2 * probability)
    return mix(_MIDDLE, _HIGH, 2 * probability - 1)


def fade(colour: Rgb, probability: float) -> Rgb:
    """Return the colour of a word, which is the greyer the lower its probability, but keeps its hue."""
    return mix(FAINT, colour, 0.3 + 0.7 * probability**0.5)


def clip(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Limit a value to a range; NaN becomes the lower limit."""
    return min(max(value, low), high) if value == value else low
