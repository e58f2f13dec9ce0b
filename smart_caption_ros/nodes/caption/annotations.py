"""Captions as annotations that a viewer draws over the unchanged image of the camera.

Where foxglove_msgs is installed, `<topic>/annotations` has boxes, their labels and the caption
(foxglove_msgs/ImageAnnotations). Where visualization_msgs is installed, `<topic>/boxes` has the boxes
(visualization_msgs/ImageMarker, which has no type for text in ROS 2).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.lifecycle import LifecyclePublisher

from smart_caption_ros.caption_messages import CAPTION_STATUSES, from_message
from smart_caption_ros.msg import BoundingBox, Caption
from smart_caption_ros.viewing.colours import BACKGROUND, DARK, UNNAMED_OBJECT, WHITE, Rgb
from smart_caption_ros.viewing.styled_words import class_colours

try:
    import foxglove_msgs.msg as foxglove_msgs
except ImportError:  # not part of the ROS 2 core
    foxglove_msgs = None
try:
    import visualization_msgs.msg as visualization_msgs
except ImportError:
    visualization_msgs = None

_FONT_SHARE = 1 / 24  # height of the letters as a share of the height of the image
_MIN_FONT_PX = 12.0
_LETTER_WIDTH = 0.6  # width of a letter as a share of its height
_LINE_HEIGHT = 1.4
_THICKNESS_SHARE = 1 / 240
_BACKGROUND_ALPHA = 0.75


class ImageAnnotations:
    """Publishes the annotations of captions, each message only while its topic has a subscriber."""

    def __init__(self, create_publisher: Callable[[type, str], LifecyclePublisher], topic: str) -> None:
        """Create the publishers of the messages that are installed.

        Args:
            create_publisher: creates the publisher of a type and a topic.
            topic: full name of the topic of the captions.
        """
        self._outputs: list[tuple[LifecyclePublisher, Callable[[Caption], Any]]] = []
        if foxglove_msgs is not None:
            publisher = create_publisher(foxglove_msgs.ImageAnnotations, f"{topic}/annotations")
            self._outputs.append((publisher, lambda caption: to_annotations(caption, foxglove_msgs)))
        if visualization_msgs is not None:
            publisher = create_publisher(visualization_msgs.ImageMarker, f"{topic}/boxes")
            self._outputs.append((publisher, lambda caption: to_marker(caption, visualization_msgs)))

    @property
    def publishers(self) -> list[LifecyclePublisher]:
        """The publishers."""
        return [publisher for publisher, _ in self._outputs]

    def publish(self, caption: Caption) -> None:
        """Publish the annotations of a caption; those of an image without a caption remove the last ones."""
        for publisher, convert in self._outputs:
            if publisher.get_subscription_count():
                publisher.publish(convert(caption))


def to_annotations(caption: Caption, foxglove_msgs: Any) -> Any:
    """Convert a caption to a foxglove_msgs/ImageAnnotations: objects with class and score, and the text below.

    Args:
        caption: the caption; one without an image size gives no annotations.
        foxglove_msgs: the module foxglove_msgs.msg, which is not installed everywhere.

    Returns:
        The annotations, all with the stamp of the image.
    """
    stamp = caption.header.stamp
    annotations = foxglove_msgs.ImageAnnotations()
    if hasattr(annotations, "timestamp"):  # since 2026; it comes before the stamps of the single annotations
        annotations.timestamp = stamp
    if not caption.image_height:
        return annotations
    font_px = max(_MIN_FONT_PX, caption.image_height * _FONT_SHARE)
    thickness_px = max(1.0, caption.image_height * _THICKNESS_SHARE)

    def text(line: str, x: float, y: float, letters: Rgb, background: Rgb) -> Any:
        return foxglove_msgs.TextAnnotation(
            timestamp=stamp,
            position=foxglove_msgs.Point2(x=x, y=y),
            text=line,
            font_size=font_px,
            text_color=_rgba(foxglove_msgs.Color, letters),
            background_color=_rgba(foxglove_msgs.Color, background, _BACKGROUND_ALPHA),
        )

    for item, colour in _coloured_objects(caption):
        annotations.points.append(
            foxglove_msgs.PointsAnnotation(
                timestamp=stamp,
                type=foxglove_msgs.PointsAnnotation.LINE_LOOP,
                points=[foxglove_msgs.Point2(x=x, y=y) for x, y in _corners(item.box)],
                outline_color=_rgba(foxglove_msgs.Color, colour),
                thickness=thickness_px,
            )
        )
        label = f"{item.class_name} {item.score:.2f}"
        # Below the upper edge of the image, where a label above the box would lie outside.
        annotations.texts.append(text(label, item.box.x1, max(item.box.y1, _LINE_HEIGHT * font_px), DARK, colour))
    lines = _lines(caption, font_px)
    for place, line in enumerate(reversed(lines)):
        y = caption.image_height - place * _LINE_HEIGHT * font_px
        annotations.texts.append(text(line, 0.0, y, WHITE, BACKGROUND))
    return annotations


def to_marker(caption: Caption, visualization_msgs: Any) -> Any:
    """Convert the objects of a caption to one visualization_msgs/ImageMarker of lines, without a text.

    Args:
        caption: the caption.
        visualization_msgs: the module visualization_msgs.msg.

    Returns:
        The marker, of type LINE_LIST: four lines of one colour for each object.
    """
    kind = visualization_msgs.ImageMarker
    marker = kind(header=caption.header, ns="objects", type=kind.LINE_LIST, action=kind.ADD)
    marker.scale = max(1.0, caption.image_height * _THICKNESS_SHARE)
    point, rgba = type(marker.position), type(marker.outline_color)
    marker.outline_color = _rgba(rgba, UNNAMED_OBJECT)
    for item, colour in _coloured_objects(caption):
        corners = _corners(item.box)
        for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
            marker.points += [point(x=x, y=y) for x, y in (start, end)]
            marker.outline_colors.append(_rgba(rgba, colour))
    return marker


def _coloured_objects(caption: Caption) -> Iterable[tuple[Any, Rgb]]:
    """Pair the objects with the colours of the overlay; named objects come last and lie on top."""
    record = from_message(caption)
    colours = class_colours(record.caption.objects, record.grounding.nouns if record.grounding else ())
    pairs = [(item, colours.get(item.class_name, UNNAMED_OBJECT)) for item in caption.objects]
    return sorted(pairs, key=lambda pair: (pair[0].class_name in colours, pair[0].score))


def _corners(box: BoundingBox) -> list[tuple[float, float]]:
    left, top, right, bottom = (float(value) for value in (box.x1, box.y1, box.x2, box.y2))
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _lines(caption: Caption, font_px: float) -> list[str]:
    """Break the text into lines of the image's width, after the camera's name and a status other than STATUS_OK."""
    status = "" if caption.status == Caption.STATUS_OK else CAPTION_STATUSES[caption.status].value
    text = ": ".join(filter(None, (caption.camera, status, caption.text)))
    return textwrap.wrap(text, max(10, int(caption.image_width / (_LETTER_WIDTH * font_px))))


def _rgba(kind: Any, colour: Rgb, alpha: float = 1.0) -> Any:
    red, green, blue = (part / 255 for part in colour)
    return kind(r=red, g=green, b=blue, a=alpha)
