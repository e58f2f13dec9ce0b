"""Detections of all types become objects, however a detector names its classes; elements without object are counted."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st
from smart_caption_ros.msg import BoundingBox, DetectedObject, DetectedObjectArray

from smart_caption_ros import captioning
from smart_caption_ros.detection.class_names import COCO_CLASSES
from smart_caption_ros.nodes.caption.detection_messages import (
    class_names_of,
    objects_of_array,
    objects_of_vision,
    objects_of_yolo,
)

NAMES = dict(enumerate(COCO_CLASSES))
BOX = (10.0, 20.0, 30.0, 60.0)


def own(name="", number=-1, score=0.5, box=BOX):
    x1, y1, x2, y2 = box
    each = DetectedObject(class_name=name, class_id=number, score=score, box=BoundingBox(x1=x1, y1=y1, x2=x2, y2=y2))
    (found,) = objects_of_array(DetectedObjectArray(objects=[each]), NAMES)
    return found


def around(box, theta=0.0):
    """Centre, width and height of a box; the centre is a Pose2D of vision_msgs or yolo_msgs."""
    position = SimpleNamespace(x=(box[0] + box[2]) / 2, y=(box[1] + box[3]) / 2)
    return SimpleNamespace(position=position, theta=theta), box[2] - box[0], box[3] - box[1]


def vision(*hypotheses, box=BOX, theta=0.0):
    """The object of a Detection2D with the fields that are read."""
    results = [SimpleNamespace(hypothesis=SimpleNamespace(class_id=name, score=score)) for name, score in hypotheses]
    center, width, height = around(box, theta)
    bbox = SimpleNamespace(center=center, size_x=width, size_y=height)
    (found,) = objects_of_vision(SimpleNamespace(detections=[SimpleNamespace(results=results, bbox=bbox)]), NAMES)
    return found


def yolo(name="", number=-1, score=0.5, box=BOX, theta=0.0):
    """The object of a yolo_msgs/Detection with the fields that are read."""
    center, width, height = around(box, theta)
    bbox = SimpleNamespace(center=center, size=SimpleNamespace(x=width, y=height))
    found = SimpleNamespace(class_name=name, class_id=number, score=score, bbox=bbox)
    (found,) = objects_of_yolo(SimpleNamespace(detections=[found]), NAMES)
    return found


of_each_type = pytest.mark.parametrize(
    "read", [own, lambda name: vision((name, 0.5)), yolo], ids=["own", "vision", "yolo"]
)


@of_each_type
@pytest.mark.parametrize(
    ("written", "name", "number"),
    [
        ("dog", "dog", 16),
        ("16", "dog", 16),
        ("16.0", "dog", 16),
        (" 62 ", "television", 62),
        ("tvmonitor", "television", 62),
        ("Dining_Table", "dining table", 60),
        ("ironing board", "ironing board", -1),
        ("0", "person", 0),
    ],
)
def test_classes_are_names_or_numbers(read, written, name, number):
    assert read(written) == captioning.DetectedObject(name, number, 0.5, BOX)


@of_each_type
@pytest.mark.parametrize("written", ["", "  ", "-1", "-7", "background", "N/A", "none"])
def test_what_stands_for_no_class_is_no_object(read, written):
    assert read(written) is None


@of_each_type
@pytest.mark.parametrize("number", [80, 99_999_999_999])
def test_an_object_whose_class_id_has_no_name_has_none(read, number):
    assert read(str(number)) == captioning.DetectedObject("", number, 0.5, BOX)


def test_labels_name_class_ids():
    labels = [SimpleNamespace(class_id=3, class_name="Tea_Pot"), SimpleNamespace(class_id=900, class_name="cup\x1b")]
    assert class_names_of(SimpleNamespace(class_map=labels)) == {3: "tea pot", 900: r"cup\x1b"}


@pytest.mark.parametrize("read", [own, yolo])
def test_the_number_may_be_given_beside_the_name_or_instead_of_it(read):
    assert read("", 16) == captioning.DetectedObject("dog", 16, 0.5, BOX)
    assert read("hound", 3) == captioning.DetectedObject("hound", 3, 0.5, BOX)
    assert read("", 80).class_name == ""


def test_the_likeliest_hypothesis_counts():
    assert vision(("cat", 0.25), ("dog", 0.5), ("horse", math.nan)).class_name == "dog"
    assert vision() is None
    assert vision(("dog", math.nan)) is None


def test_a_turned_box_gets_the_upright_one_around_it():
    turned = {"box": (0.0, 0.0, 20.0, 10.0), "theta": math.pi / 2}
    for found in (vision(("dog", 0.5), **turned), yolo("dog", **turned)):
        assert found.box_xyxy == pytest.approx((5.0, -5.0, 15.0, 15.0))


@pytest.mark.parametrize(
    "read",
    [lambda box: own("dog", box=box), lambda box: vision(("dog", 0.5), box=box), lambda box: yolo("dog", box=box)],
)
@pytest.mark.parametrize("box", [(math.nan, 0, 1, 1), (0, 0, math.inf, 1), (5, 5, 5, 9), (9, 9, 1, 1), (9, 0, 1, 5)])
def test_boxes_that_are_no_boxes_are_no_objects(read, box):
    assert read(tuple(map(float, box))) is None


floats = st.floats(width=32)
