"""Captions as annotations of the camera's image, for Foxglove and other viewers."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

import visualization_msgs.msg as visualization_msgs
from builtin_interfaces.msg import Time
from smart_caption_ros.msg import BoundingBox, Caption, DetectedObject, GroundedNoun
from std_msgs.msg import Header

from smart_caption_ros.nodes.caption import annotations as annotations_module
from smart_caption_ros.nodes.caption.annotations import ImageAnnotations, to_annotations, to_marker
from tests.nodes.waiting import wait_for

if TYPE_CHECKING:
    from rclpy.lifecycle import LifecycleNode

pytestmark = pytest.mark.needs_ros

STAMP = Time(sec=12, nanosec=34)


def stand_in() -> SimpleNamespace:
    """The messages of foxglove_msgs 3 by their published definitions: fields with their types, and no others."""

    def message(name: str, **fields: Any) -> type:
        return make_dataclass(
            name,
            [(field_name, Any, field(default_factory=kind)) for field_name, kind in fields.items()],
            kw_only=True,
            slots=True,
        )

    point = message("Point2", x=float, y=float)
    color = message("Color", r=float, g=float, b=float, a=float)
    points = message(
        "PointsAnnotation",
        timestamp=Time,
        type=int,
        points=list,
        outline_color=color,
        outline_colors=list,
        fill_color=color,
        thickness=float,
        metadata=list,
    )
    points.LINE_LOOP = 2  # type: ignore[attr-defined]
    text = message(
        "TextAnnotation",
        timestamp=Time,
        position=point,
        text=str,
        font_size=float,
        text_color=color,
        background_color=color,
        metadata=list,
    )
    annotations = message("ImageAnnotations", timestamp=Time, circles=list, points=list, texts=list, metadata=list)
    return SimpleNamespace(
        Point2=point, Color=color, PointsAnnotation=points, TextAnnotation=text, ImageAnnotations=annotations
    )


@pytest.fixture
def foxglove_msgs() -> Any:
    """foxglove_msgs.msg where it is installed, else a stand-in."""
    return annotations_module.foxglove_msgs or stand_in()


@pytest.fixture
def caption() -> Caption:
    """A dog that is named, and a lamp that is not, in an image of 640 x 480 pixels."""
    return Caption(
        header=Header(stamp=STAMP, frame_id="camera"),
        image_width=640,
        image_height=480,
        text="a dog on a sofa",
        objects=[
            DetectedObject(class_name="dog", score=0.5, box=BoundingBox(x1=10.0, y1=100.0, x2=60.0, y2=200.0)),
            DetectedObject(class_name="lamp", score=0.75, box=BoundingBox(x1=300.0, y1=0.0, x2=340.0, y2=40.0)),
        ],
        nouns=[GroundedNoun(noun="dog", lemma="dog", word_index=1, object_index=0, similarity=1.0)],
    )


def colour(message: Any) -> tuple[float, float, float]:
    return message.r, message.g, message.b


def test_every_object_has_a_box_and_a_label_and_the_named_one_lies_on_top(caption: Caption, foxglove_msgs: Any) -> None:
    annotations = to_annotations(caption, foxglove_msgs)
    lamp, dog = annotations.points
    assert [(point.x, point.y) for point in dog.points] == [(10, 100), (60, 100), (60, 200), (10, 200)]
    assert dog.type == foxglove_msgs.PointsAnnotation.LINE_LOOP
    assert colour(dog.outline_color) != colour(lamp.outline_color)
    assert dog.outline_color.a == 1
    assert [text.text for text in annotations.texts] == ["lamp 0.75", "dog 0.50", "a dog on a sofa"]
    assert all(annotation.timestamp == STAMP for annotation in (*annotations.points, *annotations.texts))
    assert getattr(annotations, "timestamp", STAMP) == STAMP


def test_the_caption_stands_at_the_lower_edge_in_lines_of_the_width(caption: Caption, foxglove_msgs: Any) -> None:
    caption.objects, caption.nouns = [], []
    caption.camera, caption.status = "head", Caption.STATUS_LOW_CONFIDENCE
    caption.text = " ".join(["a dog on a sofa"] * 6)
    texts = to_annotations(caption, foxglove_msgs).texts
    lines = sorted(texts, key=lambda text: text.position.y)
    assert " ".join(line.text for line in lines) == f"head: low confidence: {caption.text}"
    assert len(lines) > 1
    assert lines[-1].position.y == 480
    assert all(later.position.y - earlier.position.y > later.font_size for earlier, later in pairwise(lines))
    assert all(len(line.text) * line.font_size * 0.6 <= 640 for line in lines)


def test_a_label_of_an_object_at_the_upper_edge_lies_inside_the_image(caption: Caption, foxglove_msgs: Any) -> None:
    lamp = to_annotations(caption, foxglove_msgs).texts[0]
    assert lamp.position.y >= lamp.font_size


def test_an_image_that_was_not_captioned_removes_the_annotations(foxglove_msgs: Any) -> None:
    stale = Caption(header=Header(stamp=STAMP), status=Caption.STATUS_STALE)
    annotations = to_annotations(stale, foxglove_msgs)
    assert not annotations.points
    assert not annotations.texts
    assert not to_marker(stale, visualization_msgs).points


def test_older_messages_without_a_stamp_of_all_are_filled_as_well(caption: Caption) -> None:
    older = stand_in()
    older.ImageAnnotations = make_dataclass(
        "ImageAnnotations", [(name, list, field(default_factory=list)) for name in ("circles", "points", "texts")]
    )
    assert len(to_annotations(caption, older).points) == 2


def test_the_marker_has_four_lines_of_one_colour_for_each_object(caption: Caption) -> None:
    marker = to_marker(caption, visualization_msgs)
    assert marker.type == visualization_msgs.ImageMarker.LINE_LIST
    assert marker.header == caption.header
    corners = [(point.x, point.y) for point in marker.points[8:]]
    assert corners[0::2] == [(10, 100), (60, 100), (60, 200), (10, 200)], "the dog"
    assert corners[1::2] == [*corners[2::2], corners[0]], "a closed frame"
    colours = [colour(outline_color) for outline_color in marker.outline_colors]
    assert len(colours) * 2 == len(marker.points)
    assert len(set(colours[:4])) == len(set(colours[4:])) == 1
    assert colours[0] != colours[4]


def test_nothing_is_converted_or_published_without_a_subscriber(
    node: LifecycleNode, caption: Caption, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A message that is built everywhere, in place of that of foxglove_msgs.
    monkeypatch.setattr(annotations_module, "foxglove_msgs", SimpleNamespace(ImageAnnotations=Caption))
    converted: list[str] = []
    monkeypatch.setattr(
        annotations_module, "to_annotations", lambda given, module: converted.append("annotations") or given
    )
    monkeypatch.setattr(
        annotations_module, "to_marker", lambda given, module: converted.append("boxes") or to_marker(given, module)
    )
    annotations = ImageAnnotations(
        lambda kind, topic: node.create_lifecycle_publisher(kind, topic, 10), "/robot/caption"
    )
    assert [publisher.topic_name for publisher in annotations.publishers] == [
        "/robot/caption/annotations",
        "/robot/caption/boxes",
    ]
    for publisher in annotations.publishers:
        publisher.on_activate(None)
    annotations.publish(caption)
    assert not converted
    received: list[Any] = []
    node.create_subscription(visualization_msgs.ImageMarker, "/robot/caption/boxes", received.append, 10)
    publisher = annotations.publishers[1]
    wait_for(publisher.get_subscription_count, "subscriber")
    annotations.publish(caption)
    assert converted == ["boxes"]
