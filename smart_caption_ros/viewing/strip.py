"""The strip under a frame: confidence line, header, caption and facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from smart_caption_ros.viewing.colours import BACKGROUND, BAR_TRACK, FAINT, clip, confidence_colour
from smart_caption_ros.viewing.styled_words import StyledWord
from smart_caption_ros.viewing.text import font, printable, shortened, supersampling, to_bgr, width_of, wrapped

if TYPE_CHECKING:
    from smart_caption_ros.captioning import Caption
    from smart_caption_ros.grounding.named_objects import Grounding

MAX_LINES = 6

_SEPARATOR = "  ·  "


@dataclass(frozen=True)
class StripContent:
    """What a strip shows.

    Attributes:
        words: the words of the caption.
        confidence: confidence of the caption, 0 to 1; length of the line at the top.
        facts: short texts under the caption.
        header: a line above the caption; None for none.
    """

    words: Sequence[StyledWord]
    confidence: float
    facts: Sequence[str]
    header: str | None = None


@dataclass(frozen=True)
class StripLayout:
    """Sizes and line breaks of a strip, in pixels of the canvas that it is drawn on.

    Small letters are drawn at twice their size and scaled down, because the font engine places letters at whole
    pixels; `scale` is that factor.
    """

    scale: int
    width: int
    height: int
    size: int
    """Letter height of the caption."""
    small: int
    """Letter height of the header and the facts."""
    margin: int
    space: float
    """Gap between two words."""
    bar: int
    """Thickness of the confidence line, the bars and the underlines."""
    header: str
    """Shortened to the width; empty for none."""
    lines: list[list[StyledWord]]
    footer: list[str]

    @property
    def top(self) -> int:
        """Where the text begins."""
        return self.bar + self.margin // 2

    @property
    def line_height(self) -> int:
        """Distance between two lines of the caption."""
        return round(1.55 * self.size)

    @property
    def small_line_height(self) -> int:
        """Distance between two lines of the header and the facts."""
        return round(1.4 * self.small)


def facts_of(caption: Caption, grounding: Grounding | None) -> list[str]:
    """Return coverage, confidence, score, time and model as short texts, each only where it is known."""
    facts = [f"confidence {caption.confidence:.2f}", f"score {caption.score:.2f}"]
    if grounding is not None and grounding.coverage is not None:
        facts.insert(0, f"coverage {grounding.coverage:.2f}")
    if caption.timing.total_s > 0:
        facts.append(f"{1000 * caption.timing.total_s:.0f} ms")
    if caption.model:
        facts.append(printable(caption.model))
    return facts


def draw_strip(content: StripContent, width: int, size: int) -> NDArray[np.uint8]:
    """Draw a strip.

    Args:
        content: what it shows.
        width: its width in pixels.
        size: letter height of the caption in pixels.

    Returns:
        uint8 (height, width, 3) BGR.
    """
    layout = _lay_out(content, width, size)
    strip = Image.new("RGB", (layout.width, layout.height), BACKGROUND)
    draw = ImageDraw.Draw(strip)
    _draw_line_of_confidence(draw, layout, clip(content.confidence))
    baseline = layout.top
    if layout.header:
        baseline += layout.small_line_height
        _draw_small(draw, layout, baseline - 0.3 * layout.small, layout.header)
    for line in layout.lines:
        _draw_words(draw, layout, baseline, line)
        baseline += layout.line_height
    for text in layout.footer:
        baseline += layout.small_line_height
        _draw_small(draw, layout, baseline - 0.1 * layout.small, text)
    return to_bgr(strip, layout.scale)


def _lay_out(content: StripContent, width: int, size: int) -> StripLayout:
    scale = supersampling(size)
    size, width = size * scale, width * scale
    small = max(11 * scale, round(0.62 * size))
    margin = max(8 * scale, round(0.75 * size))
    room = width - 2 * margin
    space = 1.2 * width_of(" ", size)
    layout = StripLayout(
        scale=scale,
        width=width,
        height=0,
        size=size,
        small=small,
        margin=margin,
        space=space,
        bar=max(2 * scale, round(0.1 * size)),
        header=shortened(printable(content.header), small, room) if content.header else "",
        lines=_caption_lines(content.words, size, room, space),
        footer=[
            shortened(_SEPARATOR.join(line), small, room)
            for line in wrapped(content.facts, lambda fact: width_of(fact, small), width_of(_SEPARATOR, small), room)
        ],
    )
    small_lines = len(layout.footer) + bool(content.header)
    height = layout.top + layout.line_height * len(layout.lines) + layout.small_line_height * small_lines
    height += round(0.7 * margin)
    return replace(layout, height=height + -height % scale)


def _caption_lines(words: Sequence[StyledWord], size: int, room: float, space: float) -> list[list[StyledWord]]:
    if not words:
        return [[StyledWord("(no caption)", FAINT)]]
    fitting = [replace(word, text=shortened(word.text, size, room)) for word in words]
    lines = wrapped(fitting, lambda word: width_of(word.text, size), space, room)
    if len(lines) > MAX_LINES:
        rest = " ".join(word.text for word in lines[MAX_LINES - 1])
        lines = [*lines[: MAX_LINES - 1], [StyledWord(shortened(rest + " ...", size, room), FAINT)]]
    return lines


def _draw_line_of_confidence(draw: ImageDraw.ImageDraw, layout: StripLayout, confidence: float) -> None:
    draw.rectangle((0, 0, layout.width - 1, layout.bar - 1), fill=BAR_TRACK)
    length = round(confidence * layout.width)
    if length > 0:
        draw.rectangle((0, 0, length - 1, layout.bar - 1), fill=confidence_colour(confidence))


def _draw_small(draw: ImageDraw.ImageDraw, layout: StripLayout, y: float, text: str) -> None:
    draw.text((layout.margin, y), text, fill=FAINT, font=font(layout.small), anchor="ls")


def _draw_words(draw: ImageDraw.ImageDraw, layout: StripLayout, top: int, line: Sequence[StyledWord]) -> None:
    x: float = layout.margin
    for place, word in enumerate(line):
        length = width_of(word.text, layout.size)
        draw.text((x, top + 1.02 * layout.size), word.text, fill=word.colour, font=font(layout.size), anchor="ls")
        if word.probability is not None:
            _draw_bar(draw, layout, (x, top + round(1.27 * layout.size)), length, word.probability)
        if word.underlined:
            y = top + round(1.2 * layout.size)
            end = x + length + (layout.space if word.continues and place + 1 < len(line) else 0)
            draw.rectangle((round(x), y, max(round(end) - 1, round(x)), y + layout.bar - 1), fill=word.colour)
        x += length + layout.space


def _draw_bar(
    draw: ImageDraw.ImageDraw, layout: StripLayout, at: tuple[float, int], length: float, probability: float
) -> None:
    x, y = at
    left, right = round(x), max(round(x + length) - 1, round(x))
    draw.rectangle((left, y, right, y + layout.bar - 1), fill=BAR_TRACK)
    filled = left + round(probability * (right - left + 1)) - 1
    if filled >= left:
        draw.rectangle((left, y, filled, y + layout.bar - 1), fill=confidence_colour(probability))
