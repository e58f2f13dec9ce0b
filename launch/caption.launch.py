"""Start the caption node: `ros2 launch smart_caption_ros caption.launch.py image_topic:=/camera/image_raw`.

`ros2 launch smart_caption_ros caption.launch.py --show-args` lists the arguments. A launch file that includes this one
keeps its own arguments and environment: values that are set here do not leave this file.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode

from smart_caption_ros.nodes import launching

PACKAGE = "smart_caption_ros"
END_TIMEOUT_S = "15"  # the node first answers the image in progress; 5 s, the default of launch, is too short
CONFIG = Path(get_package_share_directory(PACKAGE), "config")
ARGUMENTS = [
    DeclareLaunchArgument(name, default_value=default, description=description)
    for name, (default, description) in launching.CAPTION_ARGUMENTS.items()
]


def caption_node(context: LaunchContext) -> list[LogInfo | LifecycleNode]:
    """Create the node, which configures and activates itself unless the parameter `autostart` is false.

    Raises:
        ValueError: an argument has an invalid value; one sentence, which launch prints.
    """
    values = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    respawn = launching.boolean("respawn", values["respawn"])
    warning = launching.unknown_arguments(context.argv, Path(__file__), launching.CAPTION_ARGUMENTS)
    node = LifecycleNode(
        package=PACKAGE,
        executable="caption_node",
        name="caption_node",
        namespace=values["namespace"],
        parameters=launching.caption_parameters(values, CONFIG),
        remappings=launching.caption_remappings(values, context.launch_configurations.get("ros_namespace", "")),
        ros_arguments=["--log-level", launching.log_level("log_level", values["log_level"])],
        output="screen",
        sigterm_timeout=END_TIMEOUT_S,
        respawn=respawn,
        respawn_delay=2.0,
        on_exit=None if respawn else launching.remember_failure,
    )
    return [LogInfo(msg=warning), node] if warning else [node]


def generate_launch_description() -> LaunchDescription:
    """Build the launch description; the group keeps the arguments' values from an including launch file."""
    return LaunchDescription([GroupAction([*ARGUMENTS, OpaqueFunction(function=caption_node)])])
