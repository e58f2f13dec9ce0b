"""Detections of vision_msgs and of yolo_msgs, whose packages are optional, in the caption node as a process."""

import ctypes
import os
import sys

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile

from tests.system.detector_messages import PACKAGES, install_prefix
from tests.system.fake_engine_node import DETECTS
from tests.system.test_caption_node import RELIABLE_INPUT, User
from tests.system.test_detections import PATIENT, RELIABLE, Detector, ask, at, detected

pytestmark = pytest.mark.long  # their messages are compiled


@pytest.fixture(autouse=True)
def packages(monkeypatch):
    """Stand-ins of both packages, installed for the test and the processes that it starts."""
    prefix = install_prefix()
    (folder,) = prefix.glob("lib*/**/*-packages")
    monkeypatch.syspath_prepend(folder)
    for name, path in (("PYTHONPATH", folder), ("LD_LIBRARY_PATH", prefix / "lib"), ("AMENT_PREFIX_PATH", prefix)):
        monkeypatch.setenv(name, os.pathsep.join(filter(None, [str(path), os.environ.get(name)])))
    for library in (prefix / "lib").glob("*_typesupport_*_c.so"):
        ctypes.CDLL(str(library))  # the loader of this process read the variable when the process started
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]


def boxes_of(caption):
    return [(o.class_name, o.class_id, o.box.x1, o.box.y1, o.box.x2, o.box.y2) for o in caption.objects]


def test_vision_msgs_name_their_classes_in_a_label_info(robot):
    import vision_msgs.msg as vision

    robot.start_caption_node(*PATIENT, "-p", "detection_classes:=''")
    user = User(robot)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    labels = robot.publisher(vision.LabelInfo, "/label_info", latched)
    labels.publish(vision.LabelInfo(class_map=[vision.VisionClass(class_id=3, class_name="Tea_Pot")]))
    detection, hypothesis = vision.Detection2D(), vision.ObjectHypothesisWithPose()
    hypothesis.hypothesis.class_id, hypothesis.hypothesis.score = "3", 0.75
    detection.results.append(hypothesis)
    detection.bbox.center.position.x, detection.bbox.center.position.y = 20.0, 10.0
    detection.bbox.size_x, detection.bbox.size_y = 10.0, 4.0
    publisher = robot.publisher(vision.Detection2DArray, "/detections", RELIABLE)
    publisher.publish(vision.Detection2DArray(header=at(1), detections=[detection]))
    assert boxes_of(ask(user, at(1))) == [("tea pot", 3, 15, 8, 25, 12)]


def test_yolo_msgs_are_read_and_the_type_follows_whoever_publishes(robot, diagnostics):
    import yolo_msgs.msg as yolo

    robot.start_caption_node(*PATIENT)
    user = User(robot)
    found = yolo.Detection(class_id=62, class_name="tv", score=0.75)
    found.bbox.center.position.x, found.bbox.center.position.y = 20.0, 10.0
    found.bbox.size.x, found.bbox.size.y = 10.0, 4.0
    publisher = robot.publisher(yolo.DetectionArray, "/detections", RELIABLE)
    publisher.publish(yolo.DetectionArray(header=at(1), detections=[found, yolo.Detection(class_name="dog")]))
    caption = ask(user, at(1))
    assert boxes_of(caption) == [("television", 62, 15, 8, 25, 12)], "a dog without a box is no object"
    assert caption.objects[0].score == 0.75
    diagnostics.wait_for({"objects from": "/detections (yolo_msgs/DetectionArray)"})

    robot.node.destroy_publisher(publisher)
    detector = Detector(robot)
    detector.publish(at(2), detected("shade"))
    assert len(ask(user, at(2)).objects) == 1


def test_what_the_own_detector_found_is_published_as_vision_msgs(robot):
    import vision_msgs.msg as vision

    robot.start_caption_node(*RELIABLE_INPUT, "-p", "max_age_s:=0.0", kind=DETECTS)
    published = robot.listen(vision.Detection2DArray, "/robot/caption/detections")
    user = User(robot)
    robot.wait_for(lambda: robot.node.count_publishers("/robot/caption/detections"), "publisher of detections")
    caption = ask(user, at(1))
    robot.wait_for(lambda: published, "detections")
    assert published[0].header == at(1)
    (detection,) = published[0].detections
    assert detection.results[0].hypothesis.class_id == caption.objects[0].class_name == "wall"
