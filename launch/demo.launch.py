"""Start a camera node and the caption node: `ros2 launch smart_caption_ros demo.launch.py source:=/data/photos`.

Without arguments the camera node plays the rendered rooms in this package; `source:=0` is a webcam. The arguments of
caption.launch.py can be given, too.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, LogInfo, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from smart_caption_ros.nodes import launching

PACKAGE = "smart_caption_ros"
END_TIMEOUT_S = "15"  # a webcam's driver may be slow to close
SHARE = Path(get_package_share_directory(PACKAGE))

ARGUMENTS = (
    DeclareLaunchArgument(
        "source",
        default_value="sample:household",
        description="What the camera node publishes: an image, a folder, sequences, a video, a bag, a webcam, an "
        "rtsp:// address, or sample:household, the rooms in this package.",
    ),
    DeclareLaunchArgument("rviz", default_value="false", description="Show the images with their captions in RViz."),
)


def camera_node(context: LaunchContext) -> list[LogInfo | Node]:
    """Create the camera node in the namespace of the caption node."""
    names = [argument.name for argument in ARGUMENTS]
    warning = launching.unknown_arguments(context.argv, Path(__file__), names, launching.CAPTION_ARGUMENTS)
    node = Node(
        package=PACKAGE,
        executable="camera_node",
        name="camera_node",
        namespace=context.launch_configurations.get("namespace", ""),
        # In a dictionary the value stays a string: the index of a webcam must not become a number.
        parameters=[{"source": LaunchConfiguration("source").perform(context)}],
        output="screen",
        sigterm_timeout=END_TIMEOUT_S,
        on_exit=launching.fail_with_the_process,
    )
    return [LogInfo(msg=warning), node] if warning else [node]


def generate_launch_description() -> LaunchDescription:
    """Build the launch description."""
    caption = IncludeLaunchDescription(PythonLaunchDescriptionSource(str(SHARE / "launch" / "caption.launch.py")))
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", str(SHARE / "config" / "rviz" / "caption.rviz")],
        condition=IfCondition(LaunchConfiguration("rviz")),
        output="screen",
    )
    return LaunchDescription([GroupAction([*ARGUMENTS, OpaqueFunction(function=camera_node), caption, rviz])])
