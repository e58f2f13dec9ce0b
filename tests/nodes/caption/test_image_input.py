"""The subscription to the images: its description in diagnostics, and how it is renewed."""

from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from smart_caption_ros.nodes.caption.camera import Camera
from smart_caption_ros.nodes.caption.image_input import ImageInput
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from smart_caption_ros.nodes.caption.statistics import Count
from smart_caption_ros.nodes.caption.worker import Worker
from smart_caption_ros.nodes.parameters import Parameters
from tests.nodes.fake_captioner import FakeCaptioner, image_fields
from tests.nodes.waiting import wait_for


def test_images_that_do_not_arrive_are_counted_and_none_is_taken_after_closing(node):
    parameters = Parameters(node, CAPTION_NODE_PARAMETERS)
    worker = Worker(node, parameters)
    camera = Camera(node, "", parameters, worker)
    camera.is_enabled = False
    camera.open_inputs(Model(FakeCaptioner(), None, uses_topic=False))
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    publisher = node.create_publisher(Image, "image", QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE))
    wait_for(publisher.get_subscription_count)

    def counts():
        summary = camera.publisher.statistics.summary()
        return summary.counts[Count.RECEIVED], summary.counts[Count.LOST]

    publisher.publish(Image(**image_fields(1)))
    wait_for(lambda: executor.spin_once(timeout_sec=0.1) or counts() == (1, 0))
    for shade in (2, 3, 4):  # of which the middleware keeps the newest
        publisher.publish(Image(**image_fields(shade)))
    publisher.publish(b"\0\1\0\0 these are not the fields of an image")
    for _ in range(5):
        executor.spin_once(timeout_sec=0.1)
    publisher.publish(Image(**image_fields(5)))
    wait_for(lambda: executor.spin_once(timeout_sec=0.1) or sum(counts()) == 6)
    camera.close()
    publisher.publish(Image(**image_fields(6)))
    executor.spin_once(timeout_sec=0.2)
    assert sum(counts()) == 6
    worker.close(10)
    camera.publisher.close(10)


def test_after_the_last_publisher_both_topics_are_awaited(node):
    given = ImageInput(node, "image", lambda image, info: None)
    assert given.open()
    assert given.image_topics == "/image or /image/compressed"
    publisher = node.create_publisher(CompressedImage, "image/compressed", 10)
    assert given.open()
    assert not given.open()
    assert given.topic == given.image_topics == "/image/compressed"
    node.destroy_publisher(publisher)
    given.open()
    assert given.image_topics == "/image or /image/compressed"
    given.close()


def test_why_no_image_arrives_is_known(node, stranger):
    given = ImageInput(node, "image", lambda image, info: None)
    given.open()
    assert not given.problem
    stranger.create_publisher(String, "image", 1)
    wait_for(lambda: given.problem == "/image has messages of the type std_msgs/msg/String")
    node.create_publisher(CompressedImage, "image/compressed", 1)
    wait_for(lambda: node.count_publishers("image/compressed"))
    given.open()
    assert given.topic == "/image/compressed", "whatever else is on the other topic"
    assert not given.problem
    given.close()


def test_a_quality_of_service_that_does_not_match_is_known(node_with):
    node = node_with("-p", "qos_overrides./image.subscription.reliability:=reliable")
    given = ImageInput(node, "image", lambda image, info: None)
    given.open()
    node.create_publisher(Image, "image", QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))
    wait_for(lambda: "its quality of service does not match that of the subscription" in given.problem)
