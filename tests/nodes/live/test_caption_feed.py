"""The feed of running nodes finds their captions, adds images and health, and says what it waits for."""

import time

import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import Caption
from std_msgs.msg import Header, String

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import to_message
from smart_caption_ros.grounding.named_objects import GroundedNoun, Grounding
from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.live import EventKind, FeedError, FeedEvent, Health
from smart_caption_ros.nodes.live import RosCaptionFeed, standalone_feed
from smart_caption_ros.nodes.live.caption_feed import camera_name
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.viewing import encode_picture
from tests.nodes.fake_captioner import painted, shade_caption


def caption_message(shade, camera="", stamp_s=0):
    header = Header(stamp=Time(sec=stamp_s or shade, nanosec=5), frame_id="eye")
    grounding = Grounding((GroundedNoun("shade", "shade", 0, 0, 0.9),), 1.0, 1.0, (), (), (), 0.001)
    record = CaptionRecord.of(shade_caption(shade, 64, 48), grounding, camera=camera, age_at_start_s=0.1, dropped=3)
    return to_message(msg, record, header)


@pytest.fixture
def domain(node, monkeypatch):
    """The node, in the domain that a feed looks at."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(node.context.get_domain_id()))
    return node


def wait_for_items(feed, done, again=lambda: None):
    """Take items until they are what is wanted; `again` publishes meanwhile."""
    items = []
    end_s = time.monotonic() + 30
    while not done(items):
        assert time.monotonic() < end_s, (feed.cameras, items[-5:])
        again()
        time.sleep(0.05)
        while (item := feed.next(0.0)) is not None:
            items.append(item)
    return items


def captions_in(items):
    return [item for item in items if isinstance(item, CaptionRecord)]


def test_captions_of_all_topics_are_found_with_cameras_health_and_images(domain):
    with standalone_feed(are_images_wanted=lambda: True) as feed:
        assert feed.next(0.0) is None
        assert "a topic of type smart_caption_ros/msg/Caption" in feed.waiting_for[0]
        front = domain.create_publisher(Caption, "/robot/caption", 10)
        # A publisher that appears later, with best effort.
        rear = domain.create_publisher(
            Caption, "/rear/caption", QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
        )
        images = domain.create_publisher(Image, "/front_image", 10)
        diagnostics = domain.create_publisher(DiagnosticArray, "/diagnostics", 10)
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN,
            name="part: captions",
            message="it is dark",
            values=[KeyValue(key="image topic", value="/front_image")],
            hardware_id="front",
        )
        shade = 0

        def publish():
            nonlocal shade
            shade += 1
            front.publish(caption_message(100, "front", stamp_s=shade))
            header = Header(stamp=Time(sec=shade, nanosec=5))
            images.publish(Image(header=header, **encode_image(painted(100))))  # as late as an overlay
            rear.publish(caption_message(7))
            diagnostics.publish(DiagnosticArray(status=[status]))

        items = wait_for_items(
            feed,
            lambda items: (
                {live.camera for live in captions_in(items)} == {"front", "rear"}
                and any(live.image is not None for live in captions_in(items))
                and any(camera.health is Health.WARNING for camera in feed.cameras)
            ),
            publish,
        )
        assert feed.waiting_for == ()
        cameras = {camera.camera: camera for camera in feed.cameras}
        assert cameras.keys() == {"front", "rear"}, "no place-holder is left"
        assert (cameras["front"].health_message, cameras["rear"].health) == ("it is dark", Health.UNKNOWN)
        with_image = next(live for live in captions_in(items) if live.image is not None)
        assert with_image.camera == "front"
        assert (with_image.image.bgr() == painted(100)).all()
        assert (with_image.caption.text, with_image.frame_id, with_image.dropped) == ("shade 100", "eye", 3)
        assert with_image.stamp_ns % 10**9 == 5
        domain.destroy_publisher(rear)
        wait_for_items(
            feed,
            lambda items: any(
                isinstance(item, FeedEvent) and (item.kind, item.camera) == (EventKind.GONE, "rear") for item in items
            ),
        )
        assert [camera.is_online for camera in feed.cameras if camera.camera == "rear"] == [False]


def test_one_camera_of_a_topic_can_be_chosen_and_a_misspelt_topic_is_told_of(domain):
    captions = domain.create_publisher(Caption, "both", 10)
    with standalone_feed(["bot"]) as misspelt:
        wait_for_items(misspelt, lambda items: "captions are on /both" in " ".join(misspelt.waiting_for))
    with standalone_feed(["both"], ["nosuch"]) as unknown:
        wait_for_items(
            unknown,
            lambda items: "of the camera nosuch captions are of both/rear" in " ".join(unknown.waiting_for),
            lambda: captions.publish(caption_message(9, "rear")),
        )
    with standalone_feed(["both"], ["front"]) as feed:

        def publish():
            captions.publish(caption_message(9, "rear"))
            captions.publish(caption_message(8, "front"))

        items = wait_for_items(feed, lambda items: bool(captions_in(items)), publish)
    assert {item.camera for item in captions_in(items)} == {"both/front"}


def test_images_are_received_only_while_they_are_wanted_and_as_the_files_that_they_are(domain):
    captions = domain.create_publisher(Caption, "captions", 10)
    images = domain.create_publisher(CompressedImage, "camera/compressed", 10)
    diagnostics = domain.create_publisher(DiagnosticArray, "/diagnostics", 10)
    topic = [KeyValue(key="image topic", value="/camera/compressed")]
    status = DiagnosticStatus(name="part: captions", values=topic, hardware_id="front")
    jpeg = encode_picture(painted(50), ".jpg")
    wanted = False
    with standalone_feed(["captions"], are_images_wanted=lambda: wanted) as feed:

        def publish():
            captions.publish(caption_message(8, "front"))
            images.publish(CompressedImage(header=Header(stamp=Time(sec=8, nanosec=5)), format="jpeg", data=jpeg))
            diagnostics.publish(DiagnosticArray(status=[status]))

        (first, *_) = captions_in(wait_for_items(feed, lambda items: len(captions_in(items)) > 20, publish))
        assert first.image is None
        assert images.get_subscription_count() == 0
        wanted = True
        items = wait_for_items(feed, lambda items: any(item.image for item in captions_in(items)), publish)
        assert next(item.image for item in captions_in(items) if item.image).jpeg() == jpeg
        wanted = False
        wait_for_items(feed, lambda _: images.get_subscription_count() == 0, publish)


def test_a_feed_on_a_node_of_its_caller_obeys_each_remapping_once_and_leaves_no_subscription(node):
    # Names are exchanged, so that one that is remapped twice is that of the other topic.
    rules = ("/robot7/a:=/b", "/b:=/robot7/a", "/large_image:=/small_image")
    arguments = ["--ros-args", *(part for rule in rules for part in ("-r", rule))]
    owner = Node("owner", namespace="robot7", context=node.context, cli_args=arguments, start_parameter_services=False)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(owner)
    captions = [node.create_publisher(Caption, name, 10) for name in ("/robot7/a", "/b")]
    images = [node.create_publisher(Image, name, 10) for name in ("/large_image", "/small_image")]
    diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
    topic = [KeyValue(key="image topic", value="/large_image")]
    status = DiagnosticStatus(name="part: captions", values=topic, hardware_id="front")
    with RosCaptionFeed(owner, ["a"], are_images_wanted=lambda: True) as feed:

        def publish():
            for shade, publisher in zip((10, 20), captions, strict=True):
                publisher.publish(caption_message(shade, "front", stamp_s=1))
            for shade, publisher in zip((30, 40), images, strict=True):
                header = Header(stamp=Time(sec=1, nanosec=5))
                publisher.publish(Image(header=header, **encode_image(painted(shade))))
            diagnostics.publish(DiagnosticArray(status=[status]))
            executor.spin_once(0.05)

        items = wait_for_items(feed, lambda items: any(live.image is not None for live in captions_in(items)), publish)
        assert {(live.caption.text, live.source) for live in captions_in(items)} == {("shade 20", "/b")}
        image = next(live.image for live in captions_in(items) if live.image is not None)
        assert (image.bgr() == painted(40)).all()
    wait_for_items(
        feed, lambda _: not any(publisher.get_subscription_count() for publisher in (*captions, *images)), publish
    )
    assert feed.ended
    executor.shutdown()
    owner.destroy_node()


def test_a_topic_of_another_type_is_an_error_and_closing_twice_is_none(domain):
    publisher = domain.create_publisher(String, "/chatter", 10)
    with (
        standalone_feed(["chatter"]) as feed,
        pytest.raises(FeedError, match=r"/chatter has the type std_msgs/msg/Str"),
    ):
        wait_for_items(feed, lambda items: False, lambda: publisher.publish(String()))
    feed.close()
    assert feed.ended


def test_a_feed_that_cannot_start_says_so_in_one_sentence(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "many")
    with pytest.raises(FeedError, match="ROS 2 does not start"):
        standalone_feed().__enter__()
    monkeypatch.setenv("ROS_DOMAIN_ID", "77")
    with pytest.raises(FeedError, match="topic"):
        standalone_feed(["no topic"]).__enter__()


@pytest.mark.parametrize(
    ("topic", "camera", "name"),
    [
        ("/robot/caption", "", "robot"),
        ("/robot/caption", "front", "front"),
        ("/front/caption", "front", "front"),
        ("/left/caption", "", "left"),
        ("/left/caption", "front", "left/front"),
        ("/left/front/caption", "front", "left/front"),
        ("/left/robot/caption", "front", "left/front"),
        ("/caption", "", "caption"),
        ("/what/it/sees", "", "what/it/sees"),
        ("/caption", "front", "front"),
    ],
)
def test_cameras_of_several_robots_have_different_names(topic, camera, name):
    assert camera_name(topic, camera) == name
