"""Start a camera node and the caption node: `ros2 launch smart_caption_ros demo.launch.py source:=/data/photos`.

Without arguments the camera node plays the rendered rooms in this package; `source:=0` is a webcam. The arguments of
caption.launch.py can be given, too.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_prefix, get_package_share_directory
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


def check_rviz(context: LaunchContext) -> None:
    """Raise an exception if RViz is asked for and is not installed, before a process starts that would go on alone."""
    if IfCondition(LaunchConfiguration("rviz")).evaluate(context):
        get_package_prefix("rviz2")


def camera_node(context: LaunchContext) -> list[LogInfo | Node]:
    """Create the camera node, with the namespace and the image topic of the caption node, or of its first camera."""
    given = {name: LaunchConfiguration(name, default=value[0]) for name, value in launching.CAPTION_ARGUMENTS.items()}
    (_, topic), *_ = launching.caption_remappings({name: value.perform(context) for name, value in given.items()})
    names = [argument.name for argument in ARGUMENTS]
    warning = launching.unknown_arguments(context.argv, Path(__file__), names, launching.CAPTION_ARGUMENTS)
    node = Node(
        package=PACKAGE,
        executable="camera_node",
        name="camera_node",
        namespace=context.launch_configurations.get("namespace", ""),
        # In a dictionary the value stays a string: the index of a webcam must not become a number.
        parameters=[{"source": LaunchConfiguration("source").perform(context)}],
        remappings=[("image", topic.removesuffix("/compressed"))],
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
    # The caption node comes first, because launch leaves the processes behind that it started before a wrong argument.
    checked = [OpaqueFunction(function=check_rviz), caption, OpaqueFunction(function=camera_node), rviz]
    return LaunchDescription([GroupAction([*ARGUMENTS, *checked])])
