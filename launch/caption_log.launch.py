"""Start the log node: `ros2 launch smart_caption_ros caption_log.launch.py path:=/data/captions.db`.

`ros2 launch smart_caption_ros caption_log.launch.py --show-args` lists the arguments. A launch file that includes this
one keeps its own arguments.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from smart_caption_ros.nodes import launching

PACKAGE = "smart_caption_ros"
CONFIG = Path(get_package_share_directory(PACKAGE), "config")

ARGUMENTS = (
    DeclareLaunchArgument("path", default_value="", description="File of the log; empty: the value in params_file."),
    DeclareLaunchArgument(
        "params_file", default_value=str(CONFIG / "caption_log.yaml"), description="Parameter file of the node."
    ),
    DeclareLaunchArgument(
        "namespace", default_value="", description="Namespace of the node, and the robot's name in the log."
    ),
)


def caption_log_node(context: LaunchContext) -> list[LogInfo | Node]:
    """Create the node, which is started again whenever it ends.

    Raises:
        ValueError: the parameter file is missing; one sentence, which launch prints.
    """
    values = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    warning = launching.unknown_arguments(context.argv, Path(__file__), values)
    node = Node(
        package=PACKAGE,
        executable="caption_log_node",
        name="caption_log_node",
        namespace=values["namespace"],
        parameters=[
            launching.parameter_file("params_file", values["params_file"]),
            *([{"path": values["path"]}] if values["path"] else []),
        ],
        output="screen",
        respawn=True,
        respawn_delay=2.0,
    )
    return [LogInfo(msg=warning), node] if warning else [node]


def generate_launch_description() -> LaunchDescription:
    """Build the launch description; the group keeps the arguments' values from an including launch file."""
    return LaunchDescription([GroupAction([*ARGUMENTS, OpaqueFunction(function=caption_log_node)])])
