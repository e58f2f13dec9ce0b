"""Start a camera node and the caption node: `ros2 launch smart_caption_ros demo.launch.py source:=/data/photos`.

Without arguments the camera node plays the rendered rooms in this package; `source:=0` is a webcam.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.conditions import IfCondition
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

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
        choices=["true", "false"],
        description="Restart the source at its end; false ends the camera node there, and the caption node goes on.",
    ),
    DeclareLaunchArgument(
        "rviz",
        default_value="false",
        choices=["true", "false"],
        description="Show the images with their captions in RViz.",
    ),
)


def camera_node(context: LaunchContext) -> list[Node]:
    """Create the camera node in the namespace of the caption node.

    Raises:
        ValueError: an argument has an invalid value; one sentence, which launch prints.
    """
    rate_hz = LaunchConfiguration("rate_hz").perform(context)
    try:
        rate = float(rate_hz)
    except ValueError:
        raise ValueError(f"rate_hz must be a number, not {rate_hz!r}") from None
    return [
        Node(
            package=PACKAGE,
            executable="camera_node",
            name="camera_node",
            namespace=context.launch_configurations.get("namespace", ""),
            parameters=[
                {
                    # A dictionary with a string stays a string: the index of a webcam must not become a number.
                    "source": LaunchConfiguration("source").perform(context),
                    "rate_hz": rate,
                    "loop": LaunchConfiguration("loop").perform(context) == "true",
                }
            ],
            output="screen",
            sigterm_timeout=END_TIMEOUT_S,
            on_exit=end_with_the_node,
        )
    ]


def end_with_the_node(event: ProcessExited, context: LaunchContext) -> None:
    """Let `ros2 launch` exit with status 1 when the node failed; it does so only after an exception."""
    if event.returncode:
        raise RuntimeError(f"{event.process_name} ended with status {event.returncode}")


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
