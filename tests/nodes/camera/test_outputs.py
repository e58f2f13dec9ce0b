"""What the camera node publishes beside its images, and when."""

import pytest
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage

from smart_caption_ros.nodes.camera.outputs import CameraOutputs
from tests.nodes.fake_captioner import painted


def published_topics(node):
    own = node.get_publisher_names_and_types_by_node(node.get_name(), node.get_namespace())
    return {name for name, types in own if types[0].startswith("sensor_msgs")}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {"/image", "/image/compressed", "/camera_info"}),
        (["-r", "__ns:=/left"], {"/left/image", "/left/image/compressed", "/left/camera_info"}),
        (["-r", "image:=/eye/image_raw"], {"/eye/image_raw", "/eye/image_raw/compressed", "/eye/camera_info"}),
        (["-r", "/camera_info:=/eye/info"], {"/image", "/image/compressed", "/eye/info"}),
        (["-r", "image:=/a", "-r", "/a:=/b"], {"/a", "/a/compressed", "/camera_info"}),
    ],
)
def test_camera_info_is_published_beside_the_images(node_with, arguments, expected):
    node = node_with(*arguments)
    CameraOutputs(node, "image")
    assert published_topics(node) == expected


def test_images_are_compressed_only_while_somebody_subscribes(node):
    outputs = CameraOutputs(node, "image")
    assert outputs.messages(painted(1))[1] is None
    subscription = node.create_subscription(
        CompressedImage, "image/compressed", lambda _: None, qos_profile_sensor_data
    )
    assert outputs.subscribers == 1
    compressed = outputs.messages(painted(1))[1]
    assert compressed.format == "bgr8; jpeg compressed bgr8"
    assert bytes(compressed.data).startswith(b"\xff\xd8")
    node.destroy_subscription(subscription)
    assert outputs.messages(painted(1))[1] is None
