"""Topics of the camera node besides the images."""

from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage

from smart_caption_ros.nodes.camera.outputs import CameraOutputs
from tests.nodes.fake_captioner import painted


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
