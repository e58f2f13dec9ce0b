"""Run by `colcon test` where launch_testing is installed: the demo's nodes are launched, and a caption arrives."""

import time
import unittest

# ruff: noqa: I001  (the folder launch/ is not the package launch)

import launch
import launch_testing
import rclpy
from ament_index_python.packages import get_package_share_path
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest

from smart_caption_ros.msg import Caption

TIMEOUT_S = 90.0


def generate_test_description() -> launch.LaunchDescription:
    file = get_package_share_path("smart_caption_ros") / "launch" / "demo.launch.py"
    return launch.LaunchDescription([IncludeLaunchDescription(PythonLaunchDescriptionSource(str(file))), ReadyToTest()])


class TestDemo(unittest.TestCase):
    def test_a_caption_arrives(self) -> None:
        captions: list = []  # type: ignore[type-arg]
        context = rclpy.Context()
        rclpy.init(context=context)
        node = rclpy.create_node("launch_test", context=context)
        executor = rclpy.executors.SingleThreadedExecutor(context=context)
        executor.add_node(node)
        node.create_subscription(Caption, "/robot/caption", captions.append, 10)
        end_s = time.monotonic() + TIMEOUT_S
        while not captions and time.monotonic() < end_s:
            executor.spin_once(timeout_sec=0.1)
        rclpy.shutdown(context=context)
        assert captions, "no caption"
        assert captions[0].status_message == ""


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    def test_all_nodes_end_with_status_0(self, proc_info: launch_testing.ProcInfoHandler) -> None:
        launch_testing.asserts.assertExitCodes(proc_info)
