"""Start a camera node and the caption node: `ros2 launch smart_caption_ros demo.launch.py source:=/data/photos`.

Without arguments the camera node plays the rendered rooms in this package; `source:=0` is a webcam.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from smart_caption_ros.nodes.launching import boolean, number, on_exit

PACKAGE = "smart_caption_ros"
END_TIMEOUT_S = "15"  # a webcam's driver may be slow to close
SHARE = Path(get_package_share_directory(PACKAGE))

ARGUMENTS = (
    DeclareLaunchArgument(
        "source",
        default_value="sample:household",
        description="What the camera node publishes: an image, a folder, sequences, a video, a bag, the index of a "
        "webcam, or sample:household, the rooms in this package.",
    ),
    DeclareLaunchArgument(
        "rate_hz",
        default_value="2.0",
        description="Images per second [Hz].",
    ),
    DeclareLaunchArgument(
        "loop",
        default_value="true",
        description="Restart the source at its end; false ends the camera node there, and the caption node goes on.",
    ),
    DeclareLaunchArgument(
        "rviz",
        default_value="false",
        description="Show the images with their captions in RViz.",
    ),
)


def camera_node(context: LaunchContext) -> list[Node]:
    """Create the camera node in the namespace of the caption node.

    Raises:
        ValueError: an argument has an invalid value; one sentence, which launch prints.
    """
    value = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    loop = boolean("loop", value["loop"])
    required = boolean("required", context.launch_configurations.get("required", "false"))  # of caption.launch.py
    # A dictionary with a string stays a string: the index of a webcam must not become a number.
    settings = {"source": value["source"], "rate_hz": number("rate_hz", value["rate_hz"], above=0.0), "loop": loop}
    # Nothing of a source that ends is lost while the caption node loads its model.
    waiting = {"wait_for_subscribers": 1, "wait_timeout_s": 120.0}
    return [
        Node(
            package=PACKAGE,
            executable="camera_node",
            name="camera_node",
            namespace=context.launch_configurations.get("namespace", ""),
            parameters=[settings] if loop else [settings, waiting],
            output="screen",
            sigterm_timeout=END_TIMEOUT_S,
            on_exit=on_exit(required=required),
        )
    ]


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
