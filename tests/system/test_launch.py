"""The launch files, launched: needs launch and launch_ros, which are part of ROS 2 but not of its Python wheels."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

pytest.importorskip("launch_ros.actions", reason="needs launch_ros")

from smart_caption_ros.msg import Caption

from smart_caption_ros.files import PROFILE_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "bundles" / "tiny"

INCLUDING = """
import sys
from launch import LaunchDescription
from launch.actions import ExecuteProcess, IncludeLaunchDescription, LogInfo
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import PushRosNamespace, SetParameter

def generate_launch_description():
    code = "import os; print('profile', os.environ.get('{variable}'))"
    return LaunchDescription([
        PushRosNamespace("robot_1"),
        SetParameter("use_sim_time", True),
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource("{file}"),
            launch_arguments=[("bundle", "{bundle}"), ("params_file", "{params_file}")],
        ),
        LogInfo(msg=["log level ", LaunchConfiguration("log_level", default="is not set")]),
        ExecuteProcess(cmd=[sys.executable, "-c", code], output="screen"),
    ])
"""


@pytest.fixture
def params_file(tmp_path):
    path = tmp_path / "caption.yaml"
    path.write_text("/**:\n  ros__parameters:\n    coverage: false\n    max_age_s: 0.0\n")
    return path


@pytest.fixture
def ament_prefix(ros_environment, monkeypatch):
    """The environment that a sourced ROS has; the wheels' prefix is that of Python."""
    if "AMENT_PREFIX_PATH" not in os.environ:
        monkeypatch.setenv("AMENT_PREFIX_PATH", sys.prefix)
    monkeypatch.setenv("OVERRIDE_LAUNCH_PROCESS_OUTPUT_FORMAT", "{line}")


def launch(robot, name, *arguments):
    return robot.start("tests.system.launched", str(ROOT / "launch" / f"{name}.launch.py"), *arguments)


def node_pids(process):
    return [*map(int, re.findall(r"\[caption_node-\d+\]: process started with pid \[(\d+)\]", process.log.read_text()))]


def test_a_node_that_dies_ends_the_launch_with_status_1_and_an_unknown_argument_is_pointed_out(ament_prefix, robot):
    process = launch(robot, "caption", "bundle:=/no/such/bundle", "nonsense:=1")
    robot.wait_for(lambda: process.exit_status is not None, "end of the launch")
    assert process.exit_status == 1
    log = process.log.read_text()
    assert "/no/such/bundle: no such bundle" in log
    assert "caption.launch.py has no argument nonsense: the value is not used" in log


def test_the_demo_captions_and_ends_with_its_nodes_alive(ament_prefix, robot, params_file):
    captions = robot.listen(Caption, "/robot/caption")
    process = launch(robot, "demo", f"bundle:={TINY}", f"params_file:={params_file}", "image_topic:=/eye/image_raw")
    robot.wait_for(lambda: captions, "caption")
    assert captions[0].header.frame_id == "camera_optical_frame"
    os.kill(process.pid, signal.SIGINT)
    robot.wait_for(lambda: process.exit_status is not None, "end of the launch")
    assert process.exit_status == 0, process.log_tail(30)
    assert process.log.read_text().count("process has finished cleanly") == 2


def test_a_wrong_argument_of_the_demo_leaves_no_process_behind(ament_prefix, robot):
    process = launch(robot, "demo", "log_level:=loud")
    robot.wait_for(lambda: process.exit_status is not None, "end of the launch")
    robot.spin_for(5)
    assert (process.exit_status, robot.node.get_node_names()) == (1, ["user"])


def test_a_node_that_was_killed_comes_back_with_respawn(ament_prefix, robot, params_file):
    given = (f"bundle:={TINY}", f"params_file:={params_file}", "respawn:=true")
    process = launch(robot, "caption", *given)
    robot.wait_for(lambda: "captioning /image" in process.log.read_text(), "node")
    (pid,) = node_pids(process)
    os.kill(pid, signal.SIGKILL)
    robot.wait_for(lambda: len(node_pids(process)) == 2, "second start")
    robot.wait_for(lambda: process.log.read_text().count("captioning /image") == 2, "second node")
    assert process.exit_status is None


def test_an_including_launch_file_keeps_its_environment_and_arguments(
    ament_prefix, robot, params_file, tmp_path, monkeypatch
):
    monkeypatch.delenv(PROFILE_VARIABLE)
    file = tmp_path / "robot.launch.py"
    caption = ROOT / "launch" / "caption.launch.py"
    values = {"file": caption, "bundle": TINY, "params_file": params_file, "variable": PROFILE_VARIABLE}
    text = INCLUDING
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    file.write_text(text)
    process = robot.start("tests.system.launched", str(file))
    robot.wait_for(lambda: "captions on /robot_1/caption" in process.log.read_text(), "node")
    log = process.log.read_text()
    assert "profile None" in log
    assert "log level is not set" in log
    (value,) = robot.get_parameters("/robot_1/caption_node", "use_sim_time")
    assert value.bool_value, "the includer's value"
