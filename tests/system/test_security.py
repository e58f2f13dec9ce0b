"""The nodes use the ROS graph and the disk exactly as the policy and the documentation say."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import NodeNameNonExistentError
from rclpy.parameter import Parameter
from sensor_msgs.msg import CompressedImage, Image
from smart_caption_ros.msg import Caption
from smart_caption_ros.srv import DescribeImage

from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS
from tests.nodes.fake_captioner import image_fields

ROOT = Path(__file__).resolve().parents[2]
POLICY = ROOT / "config" / "sros2" / "policy.xml"
TINY = ROOT / "tests" / "bundles" / "tiny"
CAMERA = "smart_caption_ros.nodes.camera_command"
LOG = "smart_caption_ros.nodes.caption_log_command"

Graph = dict[str, set[str]]
"""Full names of topics and services by their use in the node: publish, subscribe, reply, request."""


def policy_of(node):
    (profile,) = (element for element in ET.parse(POLICY).iter("profile") if element.get("node") == node)
    assert profile.get("ns") == "/"
    allowed = defaultdict(set)
    for rules in profile:
        ((use, qualifier),) = rules.attrib.items()
        assert qualifier == "ALLOW"
        allowed[use] |= {f"/{name.text}".replace("/~", f"/{node}") for name in rules}
    return allowed


def graph_of(robot, node):
    of = robot.node
    try:
        found = {
            "publish": of.get_publisher_names_and_types_by_node(node, "/"),
            "subscribe": of.get_subscriber_names_and_types_by_node(node, "/"),
            "reply": of.get_service_names_and_types_by_node(node, "/"),
            "request": of.get_client_names_and_types_by_node(node, "/"),
        }
    except NodeNameNonExistentError:  # its topics may be known before its name
        return defaultdict(set)
    return {use: {name for name, _ in names} for use, names in found.items()}


def assert_graph_is_policy(robot, node, seen, absent):
    """The node does all that the policy allows, and nothing else.

    Args:
        robot: has the node in its domain.
        node: its name.
        seen: names that the node used before.
        absent: names that it lacks here, because their packages are not installed.
    """
    allowed = policy_of(node)

    def graph():
        now = graph_of(robot, node)
        return {use: now.get(use, set()) | seen.get(use, set()) for use in ("publish", "subscribe", "reply", "request")}

    def unused():
        found = graph()
        return {(use, name) for use, names in allowed.items() for name in names - found[use] - absent}

    # The graph of another process is complete only after a while.
    with contextlib.suppress(AssertionError):
        robot.wait_for(lambda: not unused(), "names", timeout_s=20)
    assert not unused(), f"{node} does not do these: remove them from config/sros2/policy.xml"
    for use, names in graph().items():
        assert names <= allowed[use], f"config/sros2/policy.xml does not let {node} {use} {names - allowed[use]}"


def test_the_policy_is_what_the_caption_node_does(robot):
    has_bond = find_spec("bond") is not None
    robot.start_caption_node("-p", "use_sim_time:=true", "-p", "autostart:=false")
    assert robot.change_state("configure")
    assert robot.change_state("activate")
    robot.wait_for(lambda: "/image" in graph_of(robot, "caption_node")["subscribe"], "active node")
    raw = graph_of(robot, "caption_node")
    robot.publisher(CompressedImage, "/image/compressed")
    robot.wait_for(lambda: robot.node.count_subscribers("/image/compressed"), "the other transport")
    absent = set() if has_bond else {"/bond"}
    absent |= set() if find_spec("vision_msgs") else {"/label_info"}
    for package, topic in (("foxglove_msgs", "annotations"), ("vision_msgs", "detections")):
        absent |= set() if find_spec(package) else {f"/robot/caption/{topic}"}
    assert_graph_is_policy(robot, "caption_node", raw, absent)


def test_the_policy_is_what_the_camera_node_does(robot):
    robot.start(CAMERA, "-p", "publish_objects:=true", "-p", "use_sim_time:=true")
    robot.wait_for(lambda: robot.node.count_publishers("/camera_info"), "camera")
    assert_graph_is_policy(robot, "camera_node", {}, set())


def test_the_policy_is_what_the_log_node_does_in_one_enclave(robot, tmp_path):
    """With the images of two cameras, of which one publishes compressed ones."""
    robot.start(LOG, "-p", f"path:={tmp_path / 'log.db'}", "-p", "use_sim_time:=true", "--enclave", "/caption_log_node")
    topics = {"left": "/image", "right": "/image/compressed"}
    statuses = [
        DiagnosticStatus(name="user: captions", hardware_id=camera, values=[KeyValue(key="image topic", value=topic)])
        for camera, topic in topics.items()
    ]
    images = [
        robot.node.create_publisher(*type_and_topic, 1)
        for type_and_topic in ((Image, "/image"), (CompressedImage, topics["right"]))
    ]
    diagnostics = robot.node.create_publisher(DiagnosticArray, "/diagnostics", 1)
    captions = robot.publisher(Caption, "/robot/caption")

    def has_images():
        for camera in topics:
            captions.publish(Caption(camera=camera, format_version=Caption.FORMAT_VERSION))
        diagnostics.publish(DiagnosticArray(status=statuses))
        robot.spin_for(0.1)
        return all(publisher.get_subscription_count() for publisher in images)

    robot.wait_for(has_images, "images")
    nodes = {(name, enclave) for name, _, enclave in robot.node.get_node_names_and_namespaces_with_enclaves()}
    assert nodes == {("user", "/"), ("caption_log_node", "/caption_log_node")}
    absent = set() if find_spec("tf2_ros") else {"/tf", "/tf_static", "/tf2_frames"}
    assert_graph_is_policy(robot, "caption_log_node", {}, absent)


WRITES = re.compile(r'open(?:at)?\((?:AT_FDCWD, )?"([^"]*)", [^)]*(?:O_WRONLY|O_RDWR|O_CREAT)')


def can_trace():
    return (
        bool(shutil.which("strace")) and subprocess.run(["strace", "-qq", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_trace(), reason="needs strace, and the right to use it")
def test_no_topic_service_or_parameter_makes_the_node_touch_other_files(robot, tmp_path, monkeypatch):
    """A caption node with real models, under strace; everything that another node can send names a secret folder."""
    cache, secret, trace = tmp_path / "cache", tmp_path / "secret", tmp_path / "trace.txt"
    secret.mkdir()
    (secret / "manifest.json").write_text("{}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    captions = robot.listen(Caption, "/robot/caption")
    command = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o", str(trace), sys.executable, "-m"]
    command += ["smart_caption_ros.nodes.caption_command", "--ros-args"]
    for given in (f"bundle:={TINY}", "coverage:=false", "max_age_s:=0.0", "engine:=onnxruntime-cpu", "threads:=1"):
        command += ["-p", given]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        images = robot.publisher(Image, "/image")

        def captioned():
            images.publish(Image(**image_fields(90)))
            robot.spin_for(0.2)
            return bool(captions)

        robot.wait_for(captioned, "caption")
        before = trace.stat().st_size
        hostile = [Parameter(spec.name, value=str(secret)) for spec in CAPTION_NODE_PARAMETERS if spec.default == ""]
        assert len(hostile) >= 3
        for parameter in hostile:
            assert not robot.set_parameter("/caption_node", parameter.name, parameter.value).successful
        image = Image(**image_fields(20, encoding=str(secret)))
        image.header.frame_id = str(secret)
        images.publish(image)
        answer = robot.call(DescribeImage, "/caption_node/describe_image", image=image).caption
        assert answer.status == Caption.STATUS_ERROR
        compressed = robot.node.create_publisher(CompressedImage, "/image/compressed", 1)
        robot.node.destroy_publisher(images)
        robot.wait_for(compressed.get_subscription_count, "subscription")
        compressed.publish(CompressedImage(format=str(secret), data=str(secret).encode()))
        for name in ("deactivate", "cleanup"):
            assert robot.change_state(name)
        for parameter in hostile:
            robot.set_parameter("/caption_node", parameter.name, parameter.value)
        for name in ("configure", "activate"):
            assert robot.change_state(name)
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            os.killpg(process.pid, number)  # strace itself ends with the node
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
                break
    calls = trace.read_text(errors="replace")[before:]
    assert str(TINY) in calls, "it was configured again"
    assert str(secret) not in calls
    written = {
        path for path in WRITES.findall(calls) if not path.startswith(("/dev/", "/proc/", "/tmp/", str(tmp_path)))
    }
    assert not written
