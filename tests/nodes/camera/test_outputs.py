"""What the camera node publishes beside its images, and when."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("smart_caption_ros.msg", reason="needs ROS 2 and the built messages")

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage

from smart_caption_ros.imaging.camera_calibration import CameraCalibration, RegionOfInterest
from smart_caption_ros.imaging.errors import CalibrationError
from smart_caption_ros.nodes.camera import outputs as camera_outputs
from smart_caption_ros.nodes.camera.outputs import CameraOutputs, calibration_path, camera_info
from smart_caption_ros.nodes.demo.processes import free_domain_id
from tests.nodes.fake_captioner import painted

pytestmark = pytest.mark.needs_ros

CALIBRATION = CameraCalibration(
    width=64,
    height=48,
    distortion_model="plumb_bob",
    d=(0.1, 0.2, 0.3, 0.4, 0.5),
    k=(50.0, 0.0, 32.0, 0.0, 51.0, 24.0, 0.0, 0.0, 1.0),
    r=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
    p=(50.0, 0.0, 32.0, 0.0, 0.0, 51.0, 24.0, 0.0, 0.0, 0.0, 1.0, 0.0),
    roi=RegionOfInterest(do_rectify=True),
)


@pytest.fixture
def node_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Node]]:
    """Makes a node, whose command line has the given arguments, in a domain of its own."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    contexts: list[Context] = []

    def make(*arguments: str) -> Node:
        context = Context()
        contexts.append(context)
        rclpy.init(context=context, domain_id=free_domain_id())
        return Node("camera", context=context, cli_args=["--ros-args", *arguments])

    yield make
    for context in contexts:
        context.try_shutdown()


def published_topics(node: Node) -> set[str]:
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
def test_camera_info_is_published_beside_the_images(
    node_with: Callable[..., Node], arguments: list[str], expected: set[str]
) -> None:
    node = node_with(*arguments)
    CameraOutputs(node, "image", None, reliable=False)
    assert published_topics(node) == expected


def test_the_message_has_every_field_of_the_calibration() -> None:
    info = camera_info(CALIBRATION)
    assert (info.width, info.height, info.distortion_model) == (64, 48, "plumb_bob")
    assert tuple(info.d) == CALIBRATION.d
    assert (tuple(info.k), tuple(info.r), tuple(info.p)) == (CALIBRATION.k, CALIBRATION.r, CALIBRATION.p)
    assert info.roi.do_rectify


def test_without_a_calibration_the_message_has_the_size_and_a_matrix_of_zeros(node_with: Callable[..., Node]) -> None:
    outputs = CameraOutputs(node_with(), "image", None, reliable=False)
    _, _, info = outputs.messages(painted(1, 64, 48), 95)
    assert (info.width, info.height, info.k[0], len(info.d)) == (64, 48, 0.0, 0)


def test_images_of_another_size_than_that_of_the_calibration_are_not_calibrated(
    node_with: Callable[..., Node], capfd: pytest.CaptureFixture[str]
) -> None:
    outputs = CameraOutputs(node_with(), "image", CALIBRATION, reliable=False)
    assert outputs.messages(painted(1, 64, 48), 95)[2].k[0] == 50.0
    assert "without the calibration" not in capfd.readouterr().err
    for _ in range(3):
        info = outputs.messages(painted(1, 32, 24), 95)[2]
        assert (info.width, info.height, info.k[0]) == (32, 24, 0.0)
    log = capfd.readouterr().err
    assert log.count("for images of 64 x 48 and not of 32 x 24 pixels") == 1


def test_images_are_compressed_only_while_somebody_subscribes(
    node_with: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    qualities: list[int] = []
    encode = camera_outputs.encode_picture

    def counting(image_bgr: Any, suffix: str, quality: int) -> bytes:
        qualities.append(quality)
        return encode(image_bgr, suffix, quality)

    monkeypatch.setattr(camera_outputs, "encode_picture", counting)
    node = node_with()
    outputs = CameraOutputs(node, "image", None, reliable=False)
    assert outputs.messages(painted(1), 95)[1] is None
    assert not qualities
    subscription = node.create_subscription(
        CompressedImage, "image/compressed", lambda _: None, qos_profile_sensor_data
    )
    assert outputs.subscribers == 1
    compressed = outputs.messages(painted(1), 50)[1]
    assert compressed is not None
    assert compressed.format == "bgr8; jpeg compressed bgr8"
    assert bytes(compressed.data).startswith(b"\xff\xd8")
    assert qualities == [50]
    node.destroy_subscription(subscription)
    assert outputs.messages(painted(1), 95)[1] is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/etc/camera.yaml", Path("/etc/camera.yaml")),
        ("camera.yaml", Path("camera.yaml")),
        ("~/camera.yaml", Path.home() / "camera.yaml"),
        ("file:///etc/camera.yaml", Path("/etc/camera.yaml")),
    ],
)
def test_a_calibration_is_named_by_a_path_or_a_url(url: str, path: Path) -> None:
    assert calibration_path(url) == path


@pytest.fixture
def ros_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the Python wheels, as if they were sourced."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", sys.prefix)


def test_a_package_without_a_sourced_ros_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    with pytest.raises(CalibrationError, match=r"camera_info_url: packages cannot be found \(.*AMENT_PREFIX_PATH"):
        calibration_path("package://rclpy/camera.yaml")


def test_a_calibration_in_a_package_is_found(ros_prefix: None) -> None:
    assert calibration_path("package://rclpy/camera.yaml").parts[-3:] == ("share", "rclpy", "camera.yaml")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("file://camera.yaml", "camera_info_url: file:// needs a full path, as in file:///home/me/camera.yaml"),
        (
            "https://a/b.yaml",
            "camera_info_url must be a path or start with file:// or package://, not 'https://a/b.yaml'",
        ),
        ("package://no_such_package/a.yaml", "camera_info_url: there is no package 'no_such_package'"),
        ("package://", "camera_info_url: there is no package ''"),
    ],
)
def test_another_url_is_refused_with_a_sentence(ros_prefix: None, url: str, sentence: str) -> None:
    with pytest.raises(CalibrationError, match=f"^{re.escape(sentence)}$"):
        calibration_path(url)
