"""Start the log node: `ros2 launch smart_caption_ros caption_log.launch.py path:=/data/captions.db`.

`ros2 launch smart_caption_ros caption_log.launch.py --show-args` lists the arguments. A launch file that includes this
one keeps its own arguments.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from smart_caption_ros.nodes.launching import boolean, on_exit, parameter_file

PACKAGE = "smart_caption_ros"
CONFIG = Path(get_package_share_directory(PACKAGE), "config")

ARGUMENTS = (
    DeclareLaunchArgument(
        "path",
        default_value="",
        description="File of the log; empty: the value in params_file.",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value=str(CONFIG / "caption_log.yaml"),
        description="Parameter file of the node.",
    ),
    DeclareLaunchArgument(
        "namespace",
        default_value="",
        description="Namespace of the node, and the robot's name in the log.",
    ),
    DeclareLaunchArgument(
        "respawn",
        default_value="true",
        description="Start the node again whenever it ends.",
    ),
    DeclareLaunchArgument(
        "required",
        default_value="false",
        description="End the launch, with all that was launched, when the node fails and does not respawn; false: "
        "go on. The launch ends with status 1 in either case.",
    ),
)


def caption_log_node(context: LaunchContext) -> list[Node]:
    """Create the node.

    Raises:
        ValueError: the parameter file is missing; one sentence, which launch prints.
    """
    value = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    respawn, required = (boolean(name, value[name]) for name in ("respawn", "required"))
    return [
        Node(
            package=PACKAGE,
            executable="caption_log_node",
            name="caption_log_node",
            namespace=value["namespace"],
            parameters=[
                parameter_file("params_file", value["params_file"]),
                *([{"path": value["path"]}] if value["path"] else []),
            ],
            output="screen",
            respawn=respawn,
            respawn_delay=2.0,
            on_exit=on_exit(required=required, respawn=respawn),
        )
    ]


def generate_launch_description() -> LaunchDescription:
    """Build the launch description; the group keeps the arguments' values from an including launch file."""
    return LaunchDescription([GroupAction([*ARGUMENTS, OpaqueFunction(function=caption_log_node)])])
