"""The detections topic is subscribed to with the type that is published there."""

import pytest
from rclpy.executors import SingleThreadedExecutor
from smart_caption_ros.msg import BoundingBox, DetectedObject, DetectedObjectArray
from std_msgs.msg import String

from smart_caption_ros.nodes.caption import detection_input
from smart_caption_ros.nodes.caption.detection_input import OWN_TYPE, DetectionInput
from tests.nodes.waiting import wait_for


@pytest.fixture
def executor(node):
    made = SingleThreadedExecutor(context=node.context)
    made.add_node(node)
    return made


def test_a_message_with_too_many_objects_is_read_in_part_and_the_surest_are_kept(node, executor, monkeypatch):
    monkeypatch.setattr(detection_input, "MAX_READ", 4)
    monkeypatch.setattr(detection_input, "MAX_OBJECTS", 2)
    received = []
    reader = DetectionInput(node, "detections", lambda *given: received.append(given))
    reader.open({})
    publisher = node.create_publisher(DetectedObjectArray, "detections", 1)
    box = BoundingBox(x2=1.0, y2=1.0)
    objects = [DetectedObject(class_name="cup", score=score, box=box) for score in (0.25, 0.75, 0.0, 0.5, 1.0)]
    publisher.publish(DetectedObjectArray(objects=objects))
    wait_for(lambda: executor.spin_once(timeout_sec=0.1) or received)
    ((detections, left_out),) = received
    assert ([item.score for item in detections.objects], left_out) == ([0.75, 0.5], 1)


def test_class_ids_without_names_are_left_out_and_reported(node, executor):
    received = []
    reader = DetectionInput(node, "eye/detections", lambda *given: received.append(given))
    publisher = node.create_publisher(DetectedObjectArray, "eye/detections", 1)
    box = BoundingBox(x2=1.0, y2=1.0)
    objects = [DetectedObject(class_name=name, score=0.5, box=box) for name in ("2", "0", "cup")]
    for names, kept, problem in (
        ({}, ["cup"], "because their class ids have no name (0, 2): name the classes in detection_classes"),
        ({0: "door", 2: "lamp"}, ["lamp", "door", "cup"], ""),
    ):
        reader.open(names)
        wait_for(publisher.get_subscription_count)
        publisher.publish(DetectedObjectArray(objects=objects))
        wait_for(lambda: executor.spin_once(timeout_sec=0.1) or received)
        detections, left_out = received.pop()
        assert [item.class_name for item in detections.objects] == kept
        assert left_out == 3 - len(kept)
        assert problem in reader.problem
        assert bool(reader.problem) == bool(problem)
        reader.close()


def test_messages_of_other_types_on_the_topic_are_reported(node, stranger):
    reader = DetectionInput(node, "detections", lambda *given: None)
    assert not reader.problem
    reader.open({})
    assert not reader.problem
    stranger.create_publisher(String, "detections", 1)
    wait_for(lambda: reader.problem.startswith("/detections has messages of the type std_msgs/String, which are not"))
    node.create_publisher(DetectedObjectArray, "detections", 1)
    wait_for(lambda: reader.has_publisher)
    reader.open({})
    assert reader.type == OWN_TYPE
    assert "std_msgs/String" in reader.problem
