"""Captions as annotations of the camera's image, for Foxglove and other viewers."""

from dataclasses import field, make_dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.nodes.caption import publisher
from smart_caption_ros.nodes.caption.annotations import to_annotations
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from tests.nodes.fake_captioner import shade_caption

STAMP = Time(sec=12, nanosec=34)
HEADER = Header(stamp=STAMP, frame_id="camera")


def message(name, fields, default=lambda: None):
    fields = [(each, Any, field(default_factory=default)) for each in fields.split()]
    return make_dataclass(name, fields, kw_only=True, slots=True)


def stand_in():
    """Stand-ins for the messages of foxglove_msgs 3, with exactly the fields of their published definitions."""
    points = "timestamp type points outline_color outline_colors fill_color thickness metadata"
    texts = "timestamp position text font_size text_color background_color metadata"
    messages = SimpleNamespace(
        Point2=message("Point2", "x y"),
        Color=message("Color", "r g b a"),
        PointsAnnotation=message("PointsAnnotation", points),
        TextAnnotation=message("TextAnnotation", texts),
        ImageAnnotations=message("ImageAnnotations", "timestamp circles points texts metadata", list),
    )
    messages.PointsAnnotation.LINE_LOOP = 2
    return messages


@pytest.fixture
def foxglove_msgs():
    return publisher.foxglove_msgs or stand_in()


@pytest.fixture
def record():
    """A dog that is named, and a lamp that is not, in an image of 640 x 480 pixels."""
    objects = (
        DetectedObject("dog", 0, 0.5, (10.0, 100.0, 60.0, 200.0)),
        DetectedObject("lamp", 1, 0.75, (300.0, 0.0, 340.0, 40.0)),
    )
    caption = replace(shade_caption(9, 640, 480), text="a dog on a sofa", objects=objects)
    grounding = Grounding((GroundedNoun("dog", "dog", 1, 0, 1.0),), 1.0, 1.0, (), (), (), 0.0)
    return CaptionRecord(caption, grounding=grounding)


def colour(message):
    return message.r, message.g, message.b


def test_objects_have_a_box_and_a_label_and_the_named_one_lies_on_top(record, foxglove_msgs):
    annotations = to_annotations(record, HEADER, foxglove_msgs)
    lamp, dog = annotations.points
    assert [(point.x, point.y) for point in dog.points] == [(10, 100), (60, 100), (60, 200), (10, 200)]
    assert annotations.texts[0].position.y >= annotations.texts[0].font_size, "inside the image at its upper edge"
    assert dog.type == foxglove_msgs.PointsAnnotation.LINE_LOOP
    assert colour(dog.outline_color) != colour(lamp.outline_color)
    assert dog.outline_color.a == 1
    assert [text.text for text in annotations.texts] == ["lamp 0.75", "dog 0.50", "a dog on a sofa"]
    assert all(annotation.timestamp == STAMP for annotation in (*annotations.points, *annotations.texts))
    assert getattr(annotations, "timestamp", STAMP) == STAMP


def test_the_caption_stands_at_the_lower_edge_in_lines_of_the_width(record, foxglove_msgs):
    caption = replace(record.caption, text=" ".join(["a dog on a sofa"] * 6), objects=())
    record = CaptionRecord(caption, camera="head", status=CaptionStatus.LOW_CONFIDENCE)
    texts = to_annotations(record, HEADER, foxglove_msgs).texts
    lines = sorted(texts, key=lambda text: text.position.y)
    assert " ".join(line.text for line in lines) == f"head: low confidence: {caption.text}"
    assert len(lines) > 1
    assert lines[-1].position.y == 480
    assert all(later.position.y - earlier.position.y > later.font_size for earlier, later in pairwise(lines))
    assert all(len(line.text) * line.font_size * 0.6 <= 640 for line in lines)


def test_an_image_that_was_not_captioned_removes_the_annotations(foxglove_msgs):
    stale = CaptionRecord.without_caption(CaptionStatus.STALE, "the image is too old")
    annotations = to_annotations(stale, HEADER, foxglove_msgs)
    assert not annotations.points
    assert not annotations.texts
