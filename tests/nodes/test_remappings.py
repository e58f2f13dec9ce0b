"""A remapping is applied once to a topic, and moves the topics whose names are derived from it."""

import pytest
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import String

from smart_caption_ros.nodes.camera.outputs import CameraOutputs
from smart_caption_ros.nodes.caption import detection_input, publisher
from smart_caption_ros.nodes.caption.detection_input import DetectionInput
from smart_caption_ros.nodes.caption.image_input import ImageInput
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.publisher import Publisher
from smart_caption_ros.nodes.parameters import Parameters
from tests.nodes.waiting import wait_for

OF_EVERY_NODE = ("/rosout", "/parameter_events", "/transition_event")


@pytest.fixture
def assert_topics(node_with, monkeypatch):
    """Opens a part of a node with the given remappings, and waits until it has the expected topics alone."""
    monkeypatch.setattr(detection_input, "LabelInfo", String)
    monkeypatch.setattr(publisher, "vision_msgs", None)
    monkeypatch.setattr(publisher, "foxglove_msgs", None)

    def assert_topics(open_part, remappings, expected):
        node = node_with(*(part for remapping in remappings for part in ("-r", remapping)))

        def topics():
            of_node = (node.get_publisher_names_and_types_by_node, node.get_subscriber_names_and_types_by_node)
            found = {name for of in of_node for name, _ in of(node.get_name(), node.get_namespace())}
            return {name for name in found if not name.endswith(OF_EVERY_NODE)}

        open_part(node)
        wait_for(lambda: topics() == expected, f"state with the topics {expected}")

    return assert_topics


@pytest.mark.parametrize(
    ("remappings", "expected"),
    [
        ([], {"/image", "/image/compressed", "/camera_info"}),
        (["__ns:=/left"], {"/left/image", "/left/image/compressed", "/left/camera_info"}),
        (["image:=/eye/image_raw"], {"/eye/image_raw", "/eye/image_raw/compressed", "/eye/camera_info"}),
        (["/camera_info:=/eye/info"], {"/image", "/image/compressed", "/eye/info"}),
        (["image:=/a", "/a:=/b"], {"/a", "/a/compressed", "/camera_info"}),
    ],
)
def test_the_camera_node_publishes_camera_info_beside_its_images(assert_topics, remappings, expected):
    assert_topics(lambda node: CameraOutputs(node, "image"), remappings, expected)


@pytest.mark.parametrize(
    ("remappings", "expected"),
    [
        ([], {"/detections", "/label_info"}),
        (["detections:=/yolo/detections"], {"/yolo/detections", "/yolo/label_info"}),
        (["detections:=/a", "/a:=/b"], {"/a", "/label_info"}),
        (["detections:=/yolo/detections", "/yolo/label_info:=/names"], {"/yolo/detections", "/names"}),
        (["__ns:=/left"], {"/left/detections", "/left/label_info"}),
    ],
)
def test_the_names_of_classes_are_beside_the_detections(assert_topics, remappings, expected):
    assert_topics(lambda node: DetectionInput(node, "detections", print).open({}), remappings, expected)


@pytest.mark.parametrize(
    ("remappings", "caption"),
    [
        ([], "/robot/caption"),
        (["robot/caption:=/words"], "/words"),
        (["robot/caption:=/a", "/a:=/b"], "/a"),
        (["__ns:=/left"], "/left/robot/caption"),
    ],
)
def test_one_remapping_moves_all_topics_of_a_caption(assert_topics, remappings, caption):
    def publish(node):
        Publisher(node, "", Parameters(node, CAPTION_NODE_PARAMETERS)).create_topics()

    assert_topics(
        publish, remappings, {caption, *(f"{caption}/{name}" for name in ("text", "image", "image/compressed"))}
    )


@pytest.mark.parametrize(
    ("remappings", "raw"), [(["image:=/a", "/a:=/b"], "/a"), (["image:=/a/compressed"], "/a/compressed")]
)
def test_an_image_topic_that_ends_in_compressed_is_the_compressed_topic(node_with, remappings, raw):
    node = node_with(*(part for remapping in remappings for part in ("-r", remapping)))
    given = ImageInput(node, "image", lambda image, info: None)
    given.open()
    assert given.topic == raw
    wait_for(lambda: node.count_subscribers(raw) == 1)
    node.create_publisher(CompressedImage, "/a/compressed", 1)
    wait_for(lambda: node.count_publishers("/a/compressed"))
    given.open()
    assert given.topic == "/a/compressed"
    assert not node.count_subscribers("/b")
    assert not node.count_subscribers("/a/compressed/compressed")
