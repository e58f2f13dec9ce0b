"""Objects in the caption node as a process: from its own detector, and from the detections topic of another node."""

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image
from smart_caption_ros.msg import BoundingBox, Caption, DetectedObject, DetectedObjectArray
from std_msgs.msg import Header

from smart_caption_ros.imaging.image_messages import encode_image
from tests.detection.tiny_detectors import BLUE, GREEN, squares, write_yolox
from tests.nodes.fake_captioner import UNSURE, image_fields
from tests.system.conftest import Diagnostics
from tests.system.fake_engine_node import DETECTS
from tests.system.test_caption_node import NODE, RELIABLE_INPUT, User

# Detections that are on their way are waited for, and a busy machine is no error.
PATIENT = (
    *RELIABLE_INPUT, "-p", "max_age_s:=0.0", "-p", "detection_wait_s:=10.0",
    "-p", "qos_overrides./detections.subscription.reliability:=reliable", "-p", "detection_classes:=coco",
)  # fmt: skip
RELIABLE = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)


def detected(name, box=(1, 2, 30, 40), **fields):
    x1, y1, x2, y2 = map(float, box)
    standard = {"class_id": -1, "score": 0.75}
    return DetectedObject(class_name=name, box=BoundingBox(x1=x1, y1=y1, x2=x2, y2=y2), **{**standard, **fields})


class Detector:
    def __init__(self, robot):
        self._publisher = robot.publisher(DetectedObjectArray, "/detections", RELIABLE)

    def publish(self, header, *objects):
        self._publisher.publish(DetectedObjectArray(header=header, objects=objects))


def at(sec, nanosec=0, frame_id="eye"):
    header = Header(frame_id=frame_id)
    header.stamp.sec, header.stamp.nanosec = sec, nanosec
    return header


def ask(user, header, shade=100):
    user.images.publish(Image(header=header, **image_fields(shade)))
    return user.answer_to(header)


@pytest.fixture(scope="module")
def shared(shared_robot):
    """A caption node, its user and its detector for the tests of the topic, which keep to stamps of their own."""
    shared_robot.start_caption_node(*PATIENT)
    return shared_robot, User(shared_robot), Detector(shared_robot)


def test_objects_of_the_topic_reach_the_caption_of_their_image(shared):
    robot, user, detector = shared
    diagnostics = Diagnostics(robot)
    detector.publish(at(1), detected("shade", (-5, 2, 30, 400)), detected("16"), detected("shade", score=0.5))
    caption = ask(user, at(1))
    assert (caption.status, caption.text) == (Caption.STATUS_OK, "shade 100")
    assert [(found.class_name, found.class_id) for found in caption.objects] == [
        ("shade", -1),
        ("dog", 16),
        ("shade", -1),
    ]
    box = caption.objects[0].box
    assert (box.x1, box.y1, box.x2, box.y2) == (0, 2, 30, 48), "cut at the edges of the 64x48 image"
    assert [(noun.noun, noun.word_index, noun.object_index) for noun in caption.nouns] == [
        ("shade", 0, 0),
        ("100", 1, -1),
    ]
    coverage = caption.coverage
    assert (coverage.valid, coverage.noun_coverage, coverage.noun_support) == (True, 0.5, 0.5)
    assert (list(coverage.missed_classes), list(coverage.unsupported_nouns)) == (["dog"], ["100"])
    assert caption.timing.coverage_ms > 0

    # Nearby in time is good enough within the slop, and nothing else is.
    detector.publish(at(2, 50_000_000), detected("cat"))
    detector.publish(at(2, 90_000_000))
    assert [found.class_name for found in ask(user, at(2)).objects] == ["cat"]
    detector.publish(at(9), detected("cat"))
    alone = ask(user, at(8))
    assert (alone.status, len(alone.objects), alone.coverage.valid) == (Caption.STATUS_OK, 0, False)
    assert [noun.noun for noun in alone.nouns] == ["shade", "100"]
    diagnostics.wait_for(
        {
            "captions with no detections": "1",
            "captions with detections of their stamp": "1",
            "captions with detections nearby": "1",
            "objects from": "/detections (smart_caption_ros/DetectedObjectArray)",
        },
        "have no objects: the nearest detections are 1.000 s away, and detection_slop_s is 0.1",
    )
    assert diagnostics.status.level == DiagnosticStatus.WARN
    assert robot.set_parameter("/caption_node", "detection_slop_s", 1.5).successful
    detector.publish(at(12))  # farther from the image, and a sign that no more are to be waited for
    assert [found.class_name for found in ask(user, at(10)).objects] == ["cat"]


def test_in_place_of_a_refused_caption_the_objects_are_listed_and_spoken(shared):
    robot, user, detector = shared
    for name, value in (("min_calibrated_confidence", 0.5), ("list_objects", True), ("detection_slop_s", 0.1)):
        assert robot.set_parameter("/caption_node", name, value).successful
    objects = [detected("dining table", score=0.9), detected("62"), detected("62", score=0.5)]
    detector.publish(at(21), *objects)
    listed = ask(user, at(21), shade=UNSURE)
    assert (listed.status, listed.text) == (Caption.STATUS_LOW_CONFIDENCE, "a dining table and a television")
    assert [(noun.noun, noun.word_index, noun.object_index) for noun in listed.nouns] == [
        ("dining table", 1, 0),
        ("television", 5, 1),
    ]
    assert (listed.coverage.noun_coverage, len(listed.objects)) == (1.0, 3)
    detector.publish(at(22))
    assert ask(user, at(22), shade=UNSURE).text == "", "nothing was found"
    detector.publish(at(23), *objects)
    assert ask(user, at(23)).text == "shade 100"
    robot.wait_for(lambda: [text.data for text in user.texts][-2:] == [listed.text, "shade 100"], "texts")
    assert robot.set_parameter("/caption_node", "list_objects", False).successful
    detector.publish(at(24), *objects)
    silent = ask(user, at(24), shade=UNSURE)
    assert (silent.status, silent.text, len(silent.nouns)) == (Caption.STATUS_LOW_CONFIDENCE, "", 0)
    assert list(silent.coverage.missed_classes) == ["dining table", "television"]


def test_a_detector_that_is_late_or_stops_is_reported_although_the_own_one_stands_in(robot, diagnostics):
    process = robot.start_caption_node(*RELIABLE_INPUT, "-p", "max_age_s:=0.0", "-p", "coverage:=false", kind=DETECTS)
    user = User(robot)
    ask(user, at(1))
    diagnostics.wait_for_next()
    assert diagnostics.status.level == DiagnosticStatus.OK, "no detector was ever there"
    publisher = robot.publisher(DetectedObjectArray, "/detections", RELIABLE)
    for second in (2, 3):
        publisher.publish(DetectedObjectArray(header=at(second, 300_000_000), objects=[detected("cup")]))
        robot.spin_for(0.2)
        assert [item.class_name for item in ask(user, at(second + 1)).objects] == ["wall"]
    warning = "objects of the node's own detector instead: the nearest detections are 0.700 s away"
    diagnostics.wait_for(message=warning)
    assert diagnostics.status.level == DiagnosticStatus.WARN
    assert "a caption goes out with objects of the node's own detector" in process.log.read_text()
    robot.node.destroy_publisher(publisher)
    robot.spin_for(1.0)
    ask(user, at(60))
    diagnostics.wait_for(message="the nearest detections are 56.700 s away")


def test_an_own_detector_finds_the_objects_in_the_node(robot, tmp_path, diagnostics):
    path = write_yolox(tmp_path / "tiny.onnx")
    robot.start(NODE, *PATIENT, "-p", f"detector:={path}", "-p", "threads:=1", "-p", "detector_min_score:=0.9")
    user = User(robot)
    frame = squares(640, 640, (GREEN, (320, 160, 480, 320)), (BLUE, (0, 320, 320, 640)))
    header = at(1)
    user.images.publish(Image(header=header, **encode_image(frame)))
    caption = user.answer_to(header)
    assert caption.status == Caption.STATUS_OK
    boxes = {(found.class_name, found.box.x1, found.box.y1, found.box.x2, found.box.y2) for found in caption.objects}
    assert {(GREEN, 320, 160, 480, 320), (BLUE, 0, 320, 320, 640)} <= boxes
    assert caption.nouns, "every caption of the default bundle has a noun"
    assert caption.coverage.valid
    named = {caption.objects[noun.object_index].class_name for noun in caption.nouns if noun.object_index >= 0}
    assert named | set(caption.coverage.missed_classes) == {GREEN, BLUE}
    diagnostics.wait_for(
        {"captions with objects of the own detector": "1", "objects from": f"{path} (yolox)", "coverage": "on"}
    )
    assert diagnostics.status.level == DiagnosticStatus.OK
    assert not robot.node.get_subscriptions_info_by_topic("/detections"), "it needs no other's"
