"""The camera node as a process: what it publishes, how fast, and how it ends."""

import itertools
import os
import signal
from pathlib import Path

import cv2
import pytest
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from smart_caption_ros.msg import DetectedObjectArray

from smart_caption_ros.imaging.image_messages import decode_compressed, decode_image
from smart_caption_ros.nodes import camera_command
from smart_caption_ros.nodes.camera import node as camera_node
from smart_caption_ros.sources import open_source
from tests.nodes.fake_captioner import painted
from tests.sources.acvr_sequence import write_rooms

CAMERA = "smart_caption_ros.nodes.camera_command"
EVERYTHING = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
SHADES = (10, 20, 30)
PHOTOGRAPH = Path(__file__).resolve().parents[2] / "docs" / "images" / "demo.jpg"


@pytest.fixture
def photos(tmp_path):
    """A folder of three pictures, each of one shade."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for shade in SHADES:
        # Large pictures, because Fast DDS acknowledges small ones only with its next heartbeat, up to 3 s later.
        cv2.imwrite(str(folder / f"{shade}.png"), painted(shade, 640, 480))
    return folder


def parameters(source, **values):
    given = {"source": f'"{source}"', "wait_for_subscribers": 1, **values}
    return [part for name, value in given.items() for part in ("-p", f"{name}:={str(value).replace('True', 'true')}")]


def reliably(*topics):
    settings = ("reliability:=reliable", "depth:=10")
    return [part for topic in topics for s in settings for part in ("-p", f"qos_overrides.{topic}.publisher.{s}")]


def shades(images):
    return [round(float(decode_image(image).mean())) for image in images]


def ends(robot, process):
    """The exit status of a process that ends by itself."""
    robot.wait_for(lambda: process.exit_status is not None, "end of the process")
    return process.stop()


def test_it_waits_for_subscribers_and_publishes_every_picture_once_with_camera_info_and_jpeg(robot, photos):
    images = robot.listen(Image, "/eye/image_raw", EVERYTHING)
    infos = robot.listen(CameraInfo, "/eye/camera_info", EVERYTHING)
    given = parameters(photos, loop="false", rate_hz=20.0, wait_for_subscribers=2)
    topics = ("/eye/image_raw", "/eye/image_raw/compressed", "/eye/camera_info")
    process = robot.start(CAMERA, "-r", "image:=/eye/image_raw", *given, *reliably(*topics))
    robot.wait_for(lambda: robot.node.count_publishers("/eye/image_raw"), "camera")
    robot.spin_for(0.5)
    assert not images
    before = robot.node.get_clock().now()
    compressed = robot.listen(CompressedImage, "/eye/image_raw/compressed", EVERYTHING)
    assert ends(robot, process) == 0
    robot.wait_for(lambda: len(images) == len(compressed) == len(infos) == 3, "images, compressed and camera_info")
    assert shades(images) == [10, 20, 30]
    headers = [image.header for image in images]
    stamps = [header.stamp.sec * 10**9 + header.stamp.nanosec for header in headers]
    assert stamps == sorted(set(stamps)), "each its own stamp"
    assert stamps[0] > before.nanoseconds
    assert [image.header for image in compressed] == [info.header for info in infos] == headers
    assert {header.frame_id for header in headers} == {"camera_optical_frame"}
    assert [round(float(decode_compressed(image).mean())) for image in compressed] == [10, 20, 30]
    assert {(info.width, info.height, info.k[0]) for info in infos} == {(640, 480, 0.0)}
    assert "Traceback" not in process.log.read_text()


def test_it_starts_again_at_the_end_and_keeps_its_rate_which_changes_while_running(robot, photos):
    images = robot.listen(Image, "/image", EVERYTHING)
    robot.start(CAMERA, *parameters(photos, rate_hz=5.0, frame_id="left_eye"), *reliably("/image"))

    def periods_s(some):
        stamps = [image.header.stamp.sec + image.header.stamp.nanosec * 1e-9 for image in some]
        return sorted(after - before for before, after in itertools.pairwise(stamps))

    robot.wait_for(lambda: len(images) >= 8, "pictures of the third round")
    assert shades(images[:8]) == [10, 20, 30, 10, 20, 30, 10, 20]
    assert {image.header.frame_id for image in images} == {"left_eye"}
    assert periods_s(images[:8])[3] == pytest.approx(0.2, abs=0.1), "the median, on a busy machine"
    for rate_hz in (0.01, 0.0, 50.0):  # at once, not after an image of the slow rate
        assert robot.set_parameter("/camera_node", "rate_hz", rate_hz).successful == bool(rate_hz)
        robot.spin_for(1)
    changed = len(images) + 2
    robot.wait_for(lambda: len(images) >= changed + 21, "images at the new rate")
    assert periods_s(images[changed : changed + 21])[10] < 0.1, "a busy machine may not keep 0.02"


def test_every_nth_frame_arrives_as_it_is_with_what_is_known_of_it(robot, tmp_path):
    write_rooms(tmp_path / "rooms")
    images = robot.listen(Image, "/image", EVERYTHING)
    detections = robot.listen(DetectedObjectArray, "/detections", EVERYTHING)
    given = parameters(tmp_path / "rooms", loop="false", rate_hz=20.0, every=2, publish_objects=True)
    assert ends(robot, robot.start(CAMERA, *given, *reliably("/image", "/detections"))) == 0
    robot.wait_for(lambda: len(images) == len(detections) == 8, "images and detections")
    assert [array.header for array in detections] == [image.header for image in images]
    frames = list(open_source(tmp_path / "rooms").every(2))
    for image, message, frame in zip(images, detections, frames, strict=True):
        assert (decode_image(image) == frame.image_bgr).all()
        assert frame.objects
        assert [(detected.class_name, detected.class_id, detected.score) for detected in message.objects] == [
            (known.class_name, -1, 1.0) for known in frame.objects
        ]
        boxes = [(detected.box.x1, detected.box.y1, detected.box.x2, detected.box.y2) for detected in message.objects]
        assert boxes == [known.box_xyxy for known in frame.objects]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (parameters("sample:household", bag_topic="/camera"), "is not a ROS 2 bag"),
        (parameters(PHOTOGRAPH, publish_objects=True), "has no labelled objects"),
        (parameters("/no/such/place"), "there is no file or folder /no/such/place"),
        (parameters(PHOTOGRAPH), "0 of 1 subscribers on /image after 0.2 s"),
        (parameters("BROKEN", wait_for_subscribers=0), "no frame could be read"),
    ],
)
@pytest.mark.usefixtures("ros_environment")
def test_a_camera_that_cannot_work_says_why_and_ends_with_status_1(tmp_path, capfd, monkeypatch, given, sentence):
    monkeypatch.setattr(camera_node, "WAIT_TIMEOUT_S", 0.2)
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("a.png", "b.jpg"):
        (broken / name).write_bytes(b"this is no picture")
    assert camera_command.main(["--ros-args", *(part.replace("BROKEN", str(broken)) for part in given)]) == 1
    log = capfd.readouterr().err
    assert sentence in log
    assert "Traceback" not in log


def test_a_camera_offers_best_effort_as_a_driver_does_and_a_signal_ends_it_whether_it_waits_or_not(robot, photos):
    waiting = robot.start(CAMERA, "-r", "image:=/waiting", *parameters(photos))
    process = robot.start(CAMERA, *parameters(photos, wait_for_subscribers=0, rate_hz=20.0))
    info = robot.wait_for(lambda: robot.node.get_publishers_info_by_topic("/image"), "camera")
    assert info[0].qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
    images = robot.listen(Image, "/image", QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT))
    robot.wait_for(lambda: images, "image")
    robot.wait_for(lambda: robot.node.count_publishers("/waiting"), "camera that waits")
    for ended, number in ((process, signal.SIGINT), (waiting, signal.SIGTERM)):
        os.kill(ended.pid, number)
        assert ends(robot, ended) == 0
        assert "Traceback" not in ended.log.read_text()
