"""The overlay: a frame with boxes drawn on it and its caption in a strip below."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from smart_caption_ros.captioning import Caption
from smart_caption_ros.grounding.named_objects import Grounding
from smart_caption_ros.imaging import check_image
from smart_caption_ros.viewing.box_drawing import draw_boxes
from smart_caption_ros.viewing.colours import BACKGROUND, BAR_TRACK, FAINT, Rgb, clip, confidence_colour
from smart_caption_ros.viewing.styled_words import StyledWord, class_colours, styled_words
from smart_caption_ros.viewing.text import font, printable, shortened, supersampling, to_bgr, width_of, wrapped

MIN_STRIP_WIDTH_PX = 200
MAX_LINES = 6
_SEPARATOR = "  ·  "


def draw_overlay(
    image_bgr: NDArray[np.uint8],
    caption: Caption,
    header: str | None = None,
    grounding: Grounding | None = None,
) -> NDArray[np.uint8]:
    """Draw a caption and its evidence on a copy of the frame.

    The strip under the frame shows the caption. A word of low probability is greyer; the line at the top of the strip
    shows the confidence of the whole sentence.

    With objects and `grounding`, each class that the caption names has a colour, in which its objects are framed and
    the noun is underlined, as in Fig. 2 of the SMArT paper. The other objects are framed in grey.

    Otherwise a bar under each word shows its probability, each of the first content words has a colour, in which the
    region that it attended to most is framed, and objects are framed in white.

    Args:
        image_bgr: uint8 (H, W, 3) BGR; not modified.
        header: a line above the caption, such as the name of the camera or of the file; None for none.
        grounding: nouns and coverage of the caption, if they are known.

    Returns:
        uint8 (H + strip, max(W, 200), 3) BGR. The frame is at the top left, so boxes keep their coordinates.

    Raises:
        ValueError: the frame is not a uint8 (H, W, 3) array with at least one pixel.
    """
    check_image(image_bgr)
    height, width = image_bgr.shape[:2]
    colours = None
    if grounding is not None and caption.objects:
        colours = class_colours(caption.objects, grounding.nouns)
    words = styled_words(caption, grounding.nouns if grounding is not None else (), colours)
    # In proportion to the frame, but readable on a small one.
    text_size = round(clip(0.031 * min(width, 2 * height), 15, 110))
    facts = _facts_of(caption, grounding)
    strip = _draw_strip(words, caption.confidence, facts, header, width=max(width, MIN_STRIP_WIDTH_PX), size=text_size)
    canvas = np.empty((height + strip.shape[0], strip.shape[1], 3), np.uint8)
    canvas[:height, :width] = image_bgr
    canvas[:height, width:] = BACKGROUND[::-1]
    canvas[height:] = strip
    draw_boxes(canvas[:height, :width], words, caption.objects, colours, text_size)
    return canvas


def _facts_of(caption: Caption, grounding: Grounding | None) -> list[str]:
    """Return coverage, both confidences, score, time and model as short texts, as far as they are known."""
    known = (
        ("confidence", caption.confidence), ("calibrated", caption.calibrated_confidence), ("score", caption.score),
    )  # fmt: skip
    facts = [f"{name} {value:.2f}" for name, value in known if value is not None and not math.isnan(value)]
    if grounding is not None and grounding.coverage is not None:
        facts.insert(0, f"coverage {grounding.coverage:.2f}")
    if caption.timing.total_s > 0:
        facts.append(f"{1000 * caption.timing.total_s:.0f} ms")
    if caption.model:
        facts.append(printable(caption.model))
    return facts


def _draw_strip(
    words: Sequence[StyledWord], confidence: float, facts: Sequence[str], header: str | None, *, width: int, size: int
) -> NDArray[np.uint8]:
    """Draw a strip.

    Small letters are drawn at twice their size and scaled down, because the font engine places letters at whole pixels.

    Args:
        confidence: confidence of the caption, 0 to 1; length of the line at the top.
        size: letter height of the caption in pixels.

    Returns:
        uint8 (height, width, 3) BGR.
    """
    scale = supersampling(size)
    size, width = size * scale, width * scale
    small = max(11 * scale, round(0.62 * size))  # letter height of header and facts
    margin = max(8 * scale, round(0.75 * size))
    bar = max(2 * scale, round(0.1 * size))  # thickness of the confidence line, the bars and the underlines
    room = width - 2 * margin
    space = 1.2 * width_of(" ", size)
    line_height, small_line_height = round(1.55 * size), round(1.4 * small)

    headers = [shortened(printable(header), small, room)] if header else []
    lines = _caption_lines(words, size, room, space)
    footers = [
        shortened(_SEPARATOR.join(line), small, room)
        for line in wrapped(facts, lambda fact: width_of(fact, small), width_of(_SEPARATOR, small), room)
    ]
    top = bar + margin // 2
    height = top + line_height * len(lines) + small_line_height * (len(headers) + len(footers)) + round(0.7 * margin)
    strip = Image.new("RGB", (width, height + -height % scale), BACKGROUND)
    draw = ImageDraw.Draw(strip)

    _draw_bar(draw, 0, 0, width, bar, clip(confidence))
    for text in headers:
        top += small_line_height
        draw.text((margin, top - 0.3 * small), text, fill=FAINT, font=font(small), anchor="ls")
    for line in lines:
        _draw_line(draw, line, margin, top, size, space, bar)
        top += line_height
    for text in footers:
        top += small_line_height
        draw.text((margin, top - 0.1 * small), text, fill=FAINT, font=font(small), anchor="ls")
    return to_bgr(strip, scale)


def _caption_lines(words: Sequence[StyledWord], size: int, room: float, space: float) -> list[list[StyledWord]]:
    if not words:
        return [[StyledWord("(no caption)", FAINT)]]
    fitting = [replace(word, text=shortened(word.text, size, room)) for word in words]
    lines = wrapped(fitting, lambda word: width_of(word.text, size), space, room)
    if len(lines) > MAX_LINES:
        rest = " ".join(word.text for word in lines[MAX_LINES - 1])
        lines = [*lines[: MAX_LINES - 1], [StyledWord(shortened(rest + " ...", size, room), FAINT)]]
    return lines


def _draw_line(
    draw: ImageDraw.ImageDraw, line: Sequence[StyledWord], left: int, top: int, size: int, space: float, bar: int
) -> None:
    """Draw a line of the caption, each word with the bar of its probability or its underline."""
    x: float = left
    for place, word in enumerate(line):
        length = width_of(word.text, size)
        draw.text((x, top + 1.02 * size), word.text, fill=word.colour, font=font(size), anchor="ls")
        if word.probability is not None:
            _draw_bar(draw, x, top + round(1.27 * size), length, bar, word.probability)
        if word.underlined:
            end = length + (space if word.continues and place + 1 < len(line) else 0)
            _fill(draw, x, top + round(1.2 * size), end, bar, word.colour)
        x += length + space


def _draw_bar(draw: ImageDraw.ImageDraw, x: float, y: int, length: float, height: int, share: float) -> None:
    """Draw a bar that is filled up to a share of its length, 0 to 1."""
    left, right = _fill(draw, x, y, length, height, BAR_TRACK)
    filled = round(share * (right - left + 1))
    if filled > 0:
        draw.rectangle((left, y, left + filled - 1, y + height - 1), fill=confidence_colour(share))


def _fill(draw: ImageDraw.ImageDraw, x: float, y: int, length: float, height: int, colour: Rgb) -> tuple[int, int]:
    """Fill a rectangle at least one pixel wide; return its first and last column."""
    left, right = round(x), max(round(x + length) - 1, round(x))
    draw.rectangle((left, y, right, y + height - 1), fill=colour)
    return left, right
