"""A frame with its caption under it, and with the objects that it names or the places that its words came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from smart_caption_ros.captioning.vocabulary import join_words
from smart_caption_ros.imaging import check_image
from smart_caption_ros.viewing.text import (
    Rgb,
    font,
    label,
    printable,
    sharpening,
    shortened,
    to_bgr,
    width_of,
    wrapped,
)

MAX_WORD_BOXES = 3
MAX_LINES = 6
MIN_STRIP_WIDTH_PX = 200

_BACKGROUND: Rgb = (20, 22, 27)
_TRACK: Rgb = (58, 62, 70)
_FAINT: Rgb = (146, 152, 163)
_WHITE: Rgb = (245, 246, 248)
_DARK: Rgb = (12, 13, 16)
_UNNAMED: Rgb = (164, 167, 172)
_LOW, _MIDDLE, _HIGH = (236, 92, 86), (244, 186, 72), (94, 204, 136)
_COLOURS: tuple[Rgb, ...] = (
    (98, 190, 255),
    (255, 184, 77),
    (255, 134, 190),
    (150, 226, 116),
    (190, 166, 255),
    (250, 236, 120),
)

# Words that name no thing and no doing: where they looked says little.
_FUNCTION_WORDS = """
a an the this that these those some any all both each another other its his her their of in on at by to from
with without into onto over under through near next behind front beside between across along against around
up down out off and or but while as for is are be being been was were has have there it he she they them him
who which what where very one two three four five six several many few lot group pair black white red blue
green yellow orange brown grey gray pink purple tan
"""
_NOT_CONTENT = frozenset(_FUNCTION_WORDS.split())


class Box(Protocol):
    @property
    def box_xyxy(self) -> tuple[float, ...]: ...


class WordLike(Box, Protocol):
    @property
    def text(self) -> str: ...
    @property
    def log_probability(self) -> float: ...


class ObjectLike(Box, Protocol):
    @property
    def class_name(self) -> str: ...
    @property
    def score(self) -> float: ...


class NounLike(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def word_index(self) -> int: ...
    @property
    def object_index(self) -> int | None: ...


class GroundingLike(Protocol):
    """The nouns of a caption and what they name; `smart_caption_ros.grounding.named_objects.Grounding` is one."""

    @property
    def nouns(self) -> Sequence[NounLike]: ...
    @property
    def coverage(self) -> float | None: ...


class TimingLike(Protocol):
    @property
    def total_s(self) -> float: ...


class CaptionLike(Protocol):
    """What an overlay shows of a caption; `smart_caption_ros.captioning.Caption` is one."""

    @property
    def text(self) -> str: ...
    @property
    def words(self) -> Sequence[WordLike]: ...
    @property
    def score(self) -> float: ...
    @property
    def confidence(self) -> float: ...
    @property
    def objects(self) -> Sequence[ObjectLike]: ...
    @property
    def timing(self) -> TimingLike: ...
    @property
    def model(self) -> str: ...


def draw_overlay(
    image_bgr: NDArray[np.uint8],
    caption: CaptionLike,
    header: str | None = None,
    grounding: GroundingLike | None = None,
) -> NDArray[np.uint8]:
    """The frame with a strip under it.

    The strip shows the caption; a word of which the model was unsure is greyer, and the line on top of the strip is
    the confidence of the whole sentence.

    Where objects were found and `grounding` says which of them the caption names (SMArT, Fig. 2), every named class
    has a colour: its objects are framed in it, and the noun is underlined in it. The other objects are grey.

    Else a bar under each word is as long as the word's probability is high, and the first content words have a colour
    of their own, in which the place that they attended to most is framed. Objects then have thin white frames.

    Args:
        image_bgr: uint8 HxWx3; it is not changed.
        caption: see CaptionLike.
        header: a line above the caption, such as the name of the camera or of the file.
        grounding: the nouns of the caption and the objects that they name.

    Returns:
        uint8 (H + strip) x max(W, 200) x 3. The frame lies at the top left, pixel for pixel, so boxes keep
        their coordinates.

    Raises:
        ValueError: where the array is not uint8 HxWx3 with at least one pixel.
    """
    check_image(image_bgr)
    height, width = image_bgr.shape[:2]
    colours: dict[str, Rgb] | None = None
    if grounding is not None and caption.objects:
        colours = _class_colours(caption.objects, grounding.nouns)
        words = _grounded_words(caption, grounding.nouns, colours)
    else:
        words = _words_of(caption)
    facts = _facts(caption, grounding)
    size = _text_size(width, height)
    strip = _strip(max(width, MIN_STRIP_WIDTH_PX), size, words, caption.confidence, facts, header)
    canvas = np.empty((height + strip.shape[0], strip.shape[1], 3), np.uint8)
    canvas[:height, :width] = image_bgr
    canvas[:height, width:] = _BACKGROUND[::-1]
    canvas[height:] = strip
    _draw_boxes(canvas[:height, :width], words, caption.objects, colours)
    return canvas


@dataclass(frozen=True)
class _Word:
    text: str
    probability: float | None
    """None where no bar is to show it."""
    colour: Rgb
    box_xyxy: tuple[float, ...] | None
    """Drawn where it is not None."""
    underlined: bool = False
    goes_on: bool = False
    """Whether the line under it goes on to the next word."""


def _class_colours(objects: Sequence[ObjectLike], nouns: Sequence[NounLike]) -> dict[str, Rgb]:
    """A colour for every class that is named, in the order of the nouns."""
    named = [objects[noun.object_index].class_name for noun in nouns if noun.object_index is not None]
    return {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(dict.fromkeys(named))}


def _words_of(caption: CaptionLike) -> list[_Word]:
    if not caption.words:
        return [_Word(text, None, _WHITE, None) for text in printable(caption.text).split()]
    words: list[_Word] = []
    coloured: dict[str, Rgb] = {}
    for word in caption.words:
        probability = _clipped(math.exp(min(word.log_probability, 0.0)))
        text = printable(word.text)
        if words and _is_clitic(text):
            words[-1] = replace(words[-1], text=words[-1].text + text)  # "dog" and "'s" are set as one word
            continue
        colour, box = _WHITE, None
        if len(coloured) < MAX_WORD_BOXES and _is_content(text) and text not in coloured:
            colour = coloured[text] = _COLOURS[len(coloured)]
            box = tuple(word.box_xyxy)
        words.append(_Word(text, probability, _doubted(colour, probability), box))
    return words


def _grounded_words(caption: CaptionLike, nouns: Sequence[NounLike], colours: dict[str, Rgb]) -> list[_Word]:
    """The words; those that name an object underlined and in the colour of its class."""
    naming: dict[int, tuple[Rgb, bool]] = {}
    for noun in nouns:
        if noun.object_index is not None:
            colour = colours[caption.objects[noun.object_index].class_name]
            last = noun.word_index + len(noun.text.split()) - 1
            naming |= {place: (colour, place < last) for place in range(noun.word_index, last + 1)}
    tokens = [(word.text, _clipped(math.exp(min(word.log_probability, 0.0)))) for word in caption.words]
    words: list[_Word] = []
    for place, (text, probability) in enumerate(tokens or [(text, 1.0) for text in caption.text.split()]):
        if words and _is_clitic(text):
            words[-1] = replace(words[-1], text=words[-1].text + printable(text))
            continue
        colour, goes_on = naming.get(place, (_WHITE, False))
        words.append(_Word(printable(text), None, _doubted(colour, probability), None, place in naming, goes_on))
    return words


def _is_clitic(word: str) -> bool:
    return join_words(["word", word]) == f"word{word}"


def _doubted(colour: Rgb, probability: float) -> Rgb:
    """A word's colour, greyer the less sure the word; of a doubtful word, too, it must be recognised."""
    return _mixed(_FAINT, colour, 0.3 + 0.7 * math.sqrt(probability))


def _is_content(word: str) -> bool:
    return word.isalpha() and word.lower() not in _NOT_CONTENT


def _text_size(width: int, height: int) -> int:
    """Height of the caption's letters: readable on a thumbnail, in proportion on a large frame."""
    return round(_clipped(0.031 * min(width, 2 * height), 15, 110))


# --- the strip -----------------------------------------------------------------------------------------


def _strip(
    width: int, size: int, words: list[_Word], confidence: float, facts: list[str], header: str | None
) -> NDArray[np.uint8]:
    # Small letters are set at twice their size and scaled down: the font engine spaces them in whole pixels.
    scale = sharpening(size)
    size, width = size * scale, width * scale
    small = max(11 * scale, round(0.62 * size))
    margin = max(8 * scale, round(0.75 * size))
    room = width - 2 * margin
    space = 1.2 * width_of(" ", size)
    line_height = round(1.55 * size)
    small_line_height = round(1.4 * small)
    bar = max(2 * scale, round(0.1 * size))

    lines = _caption_lines(words, size, room, space)
    footer = [
        shortened("  ·  ".join(line), small, room)
        for line in wrapped(facts, lambda fact: width_of(fact, small), width_of("  ·  ", small), room)
    ]

    top = bar + margin // 2
    header_height = small_line_height if header else 0
    height = top + header_height + line_height * len(lines) + small_line_height * len(footer) + round(0.7 * margin)
    height += -height % scale
    strip = Image.new("RGB", (width, height), _BACKGROUND)
    draw = ImageDraw.Draw(strip)

    confidence = _clipped(confidence)
    draw.rectangle((0, 0, width - 1, bar - 1), fill=_TRACK)
    if round(confidence * width) > 0:
        draw.rectangle((0, 0, round(confidence * width) - 1, bar - 1), fill=_confidence_colour(confidence))

    baseline = top
    if header:
        baseline += small_line_height
        text = shortened(printable(header), small, room)
        draw.text((margin, baseline - 0.3 * small), text, fill=_FAINT, font=font(small), anchor="ls")
    for line in lines:
        x: float = margin
        for place, word in enumerate(line):
            length = width_of(word.text, size)
            draw.text((x, baseline + 1.02 * size), word.text, fill=word.colour, font=font(size), anchor="ls")
            if word.probability is not None:
                y = baseline + round(1.27 * size)
                _draw_bar(draw, x, y, length, bar, word.probability)
            if word.underlined:
                y = baseline + round(1.2 * size)
                end = x + length + (space if word.goes_on and place + 1 < len(line) else 0)
                draw.rectangle((round(x), y, max(round(end) - 1, round(x)), y + bar - 1), fill=word.colour)
            x += length + space
        baseline += line_height
    for text in footer:
        baseline += small_line_height
        draw.text((margin, baseline - 0.1 * small), text, fill=_FAINT, font=font(small), anchor="ls")
    return to_bgr(strip, scale)


def _caption_lines(words: list[_Word], size: int, room: float, space: float) -> list[list[_Word]]:
    if not words:
        return [[_Word("(no caption)", None, _FAINT, None)]]
    fitting = [replace(word, text=shortened(word.text, size, room)) for word in words]
    lines = wrapped(fitting, lambda word: width_of(word.text, size), space, room)
    if len(lines) > MAX_LINES:
        rest = " ".join(word.text for word in lines[MAX_LINES - 1])
        lines = [*lines[: MAX_LINES - 1], [_Word(shortened(rest + " ...", size, room), None, _FAINT, None)]]
    return lines


def _facts(caption: CaptionLike, grounding: GroundingLike | None) -> list[str]:
    facts = [f"confidence {caption.confidence:.2f}", f"score {caption.score:.2f}"]
    if grounding is not None and grounding.coverage is not None:
        facts.insert(0, f"coverage {grounding.coverage:.2f}")
    if caption.timing.total_s > 0:
        facts.append(f"{1000 * caption.timing.total_s:.0f} ms")
    if caption.model:
        facts.append(printable(caption.model))
    return facts


def _draw_bar(draw: ImageDraw.ImageDraw, x: float, y: int, length: float, thickness: int, probability: float) -> None:
    left, right = round(x), max(round(x + length) - 1, round(x))
    draw.rectangle((left, y, right, y + thickness - 1), fill=_TRACK)
    filled = left + round(probability * (right - left + 1)) - 1
    if filled >= left:
        draw.rectangle((left, y, filled, y + thickness - 1), fill=_confidence_colour(probability))


def _confidence_colour(probability: float) -> Rgb:
    if probability < 0.5:
        return _mixed(_LOW, _MIDDLE, 2 * probability)
    return _mixed(_MIDDLE, _HIGH, 2 * probability - 1)


def _mixed(first: Rgb, second: Rgb, share: float) -> Rgb:
    """`share` of the second colour and the rest of the first."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def _clipped(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """The value within bounds; the lower bound for NaN."""
    return min(max(value, low), high) if value == value else low


# --- boxes ---------------------------------------------------------------------------------------------


def _draw_boxes(
    picture: NDArray[np.uint8], words: list[_Word], objects: Sequence[ObjectLike], colours: dict[str, Rgb] | None
) -> None:
    """Frames for objects and for coloured words; `picture` is drawn upon.

    Args:
        picture: uint8 HxWx3.
        words: those with a box have it framed.
        objects: all of them are framed.
        colours: of the named classes; None where nobody knows which are named.
    """
    height, width = picture.shape[:2]
    size = round(_clipped(0.55 * _text_size(width, height), 11, 60))
    thickness = max(1, round(0.0032 * min(width, 2 * height)))
    taken: list[tuple[int, int, int, int]] = []
    plates: list[tuple[tuple[int, int, int, int], NDArray[np.uint8]]] = []
    minor: list[tuple[tuple[int, int, int, int], NDArray[np.uint8]]] = []

    # What is named lies over what is not, and a sure object over a doubtful one.
    named = colours or {}
    for each in sorted(objects, key=lambda each: (each.class_name in named, each.score)):
        corners = _pixels(each.box_xyxy, width, height)
        if corners is None:
            continue
        text = f"{printable(each.class_name)} {each.score:.2f}"
        if each.class_name in named:
            _frame(picture, corners, named[each.class_name], thickness)
            plates.insert(0, (corners, label(text, size, _DARK, named[each.class_name])))
        else:
            colour = _WHITE if colours is None else _UNNAMED
            _frame(picture, corners, colour, max(1, thickness - 1))
            minor.insert(0, (corners, label(text, size, colour, _DARK)))

    # Words that looked at one place share a frame, one line inside the other.
    nested: dict[tuple[int, int, int, int], int] = {}
    for word in words:
        if word.box_xyxy is None:
            continue
        corners = _pixels(word.box_xyxy, width, height)
        if corners is None:
            continue
        inset = nested.get(corners, 0) * (thickness + 2)
        nested[corners] = nested.get(corners, 0) + 1
        left, top, right, bottom = corners
        if right - left > 2 * inset + 4 and bottom - top > 2 * inset + 4:
            _frame(picture, (left + inset, top + inset, right - inset, bottom - inset), word.colour, thickness)
        plates.append((corners, label(word.text, size, _DARK, word.colour)))

    for corners, plate in plates:
        _place(picture, corners, plate, taken)
    for corners, plate in minor:
        _place(picture, corners, plate, taken, only_where_free=True)


def _pixels(box_xyxy: tuple[float, ...], width: int, height: int) -> tuple[int, int, int, int] | None:
    """The box in whole pixels inside the picture; None where nothing of it is there."""
    if len(box_xyxy) != 4 or not all(math.isfinite(value) for value in box_xyxy):
        return None
    left, right = (round(_clipped(value, 0, width)) for value in box_xyxy[0::2])
    top, bottom = (round(_clipped(value, 0, height)) for value in box_xyxy[1::2])
    return (left, top, right, bottom) if right - left >= 2 and bottom - top >= 2 else None


def _frame(picture: NDArray[np.uint8], corners: tuple[int, int, int, int], colour: Rgb, thickness: int) -> None:
    """A frame inside the box with a dark edge, to be seen on any background."""
    left, top, right, bottom = corners
    for inset, shade, width in ((0, _DARK, thickness + 2), (1, colour, thickness)):
        for edge in range(width):
            at = inset + edge
            if right - at - 1 >= left + at and bottom - at - 1 >= top + at:
                cv2.rectangle(picture, (left + at, top + at), (right - at - 1, bottom - at - 1), shade[::-1])


def _place(
    picture: NDArray[np.uint8],
    corners: tuple[int, int, int, int],
    plate: NDArray[np.uint8],
    taken: list[tuple[int, int, int, int]],
    only_where_free: bool = False,
) -> None:
    """Put the plate where it hides no other: above the box, else below, else inside, else one further up.

    Where it would hide another everywhere, it goes to the first of these places, or with `only_where_free` nowhere.
    """
    height, width = picture.shape[:2]
    plate = plate[:height, :width]
    tall, wide = plate.shape[:2]
    left, top, right, bottom = corners
    candidates = [(left, top - tall), (left, bottom), (right - wide, top - tall), (right - wide, bottom)]
    candidates += [(left, top), (left, bottom - tall), (left, top - 2 * tall), (left, bottom + tall)]
    spots = [(round(_clipped(x, 0, width - wide)), y) for x, y in candidates if 0 <= y <= height - tall] or [
        (round(_clipped(left, 0, width - wide)), round(_clipped(top, 0, height - tall)))
    ]
    free = (spot for spot in spots if not any(_overlap(spot, tall, wide, other) for other in taken))
    spot = next(free, None)
    if spot is None and only_where_free:
        return
    x, y = spot or spots[0]
    picture[y : y + tall, x : x + wide] = plate
    taken.append((x, y, x + wide, y + tall))


def _overlap(spot: tuple[int, int], tall: int, wide: int, other: tuple[int, int, int, int]) -> bool:
    x, y = spot
    return x < other[2] and other[0] < x + wide and y < other[3] and other[1] < y + tall
