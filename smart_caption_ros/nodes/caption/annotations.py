"""Convert captions to annotations (foxglove_msgs), which a viewer draws over the image of the camera."""

import textwrap
from collections.abc import Iterable
from typing import Any

from std_msgs.msg import Header

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.viewing.colours import BACKGROUND, DARK, UNNAMED_OBJECT, WHITE, Rgb
from smart_caption_ros.viewing.styled_words import class_colours

_FONT_SHARE = 1 / 24  # height of the letters as a share of the height of the image
_MIN_FONT_PX = 12.0
_LETTER_WIDTH = 0.6  # width of a letter as a share of its height
_LINE_HEIGHT = 1.4
_THICKNESS_SHARE = 1 / 240
_BACKGROUND_ALPHA = 0.75


def to_annotations(record: CaptionRecord, header: Header, foxglove_msgs: Any) -> Any:
    """Convert a record to a foxglove_msgs/ImageAnnotations: objects with class and score, and the caption below.

    The message for an image without a caption is empty, so that the viewer removes the last annotations.

    Args:
        foxglove_msgs: the module foxglove_msgs.msg, which is not installed everywhere.
    """
    stamp, (_, height) = header.stamp, record.caption.image_size
    annotations = foxglove_msgs.ImageAnnotations()
    if hasattr(annotations, "timestamp"):  # since 2026; it takes precedence over the stamps of the annotations
        annotations.timestamp = stamp
    if not height:
        return annotations
    font_px = max(_MIN_FONT_PX, height * _FONT_SHARE)
    thickness_px = max(1.0, height * _THICKNESS_SHARE)

    def text(line: str, x: float, y: float, letters: Rgb, background: Rgb) -> Any:
        return foxglove_msgs.TextAnnotation(
            timestamp=stamp,
            position=foxglove_msgs.Point2(x=x, y=y),
            text=line,
            font_size=font_px,
            text_color=_rgba(foxglove_msgs.Color, letters),
            background_color=_rgba(foxglove_msgs.Color, background, _BACKGROUND_ALPHA),
        )

    for item, colour in _coloured_objects(record):
        x1, y1, x2, y2 = map(float, item.box_xyxy)
        annotations.points.append(
            foxglove_msgs.PointsAnnotation(
                timestamp=stamp,
                type=foxglove_msgs.PointsAnnotation.LINE_LOOP,
                points=[foxglove_msgs.Point2(x=x, y=y) for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))],
                outline_color=_rgba(foxglove_msgs.Color, colour),
                thickness=thickness_px,
            )
        )
        label = f"{item.class_name} {item.score:.2f}"
        # A label above the upper edge of the image would not be visible.
        annotations.texts.append(text(label, x1, max(y1, _LINE_HEIGHT * font_px), DARK, colour))
    lines = _lines(record, font_px)
    for place, line in enumerate(reversed(lines)):
        y = height - place * _LINE_HEIGHT * font_px
        annotations.texts.append(text(line, 0.0, y, WHITE, BACKGROUND))
    return annotations


def _coloured_objects(record: CaptionRecord) -> Iterable[tuple[DetectedObject, Rgb]]:
    """Pair the objects with the colours of the overlay; named objects come last and are drawn on top."""
    objects = record.caption.objects
    colours = class_colours(objects, record.grounding.nouns if record.grounding is not None else ())
    pairs = [(item, colours.get(item.class_name, UNNAMED_OBJECT)) for item in objects]
    return sorted(pairs, key=lambda pair: (pair[0].class_name in colours, pair[0].score))


def _lines(record: CaptionRecord, font_px: float) -> list[str]:
    """Break the caption, after the camera's name and a status other than OK, into lines of the width of the image."""
    status = "" if record.status is CaptionStatus.OK else record.status.value
    text = ": ".join(filter(None, (record.camera, status, record.caption.text)))
    return textwrap.wrap(text, max(10, int(record.caption.image_size[0] / (_LETTER_WIDTH * font_px))))


def _rgba(kind: Any, colour: Rgb, alpha: float = 1.0) -> Any:
    red, green, blue = (part / 255 for part in colour)
    return kind(r=red, g=green, b=blue, a=alpha)
