"""Start the caption node: `ros2 launch smart_caption_ros caption.launch.py image_topic:=/camera/image_raw`.

`ros2 launch smart_caption_ros caption.launch.py --show-args` lists the arguments.
"""

import os
from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode

PACKAGE = "smart_caption_ros"
CONFIG = Path(get_package_share_directory(PACKAGE), "config")
PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"

ARGUMENTS = (
    DeclareLaunchArgument(
        "image_topic",
        default_value="image",
        description="sensor_msgs/Image topic of the camera; compressed images are on <image_topic>/compressed.",
    ),
    DeclareLaunchArgument(
        "caption_topic",
        default_value="",
        description="Topic of the captions; text and overlays are on <caption_topic>/text and <caption_topic>/image; "
        "empty: robot/caption, or caption in a namespace.",
    ),
    DeclareLaunchArgument(
        "bundle",
        default_value="",
        description="Folder of the bundle to load; empty: the value in params_file.",
    ),
    DeclareLaunchArgument(
        "engine",
        default_value="",
        description="Engine that runs the model, or auto; empty: the value in params_file.",
    ),
    DeclareLaunchArgument(
        "objects_from",
        default_value="",
        description="Where objects come from: auto, detector, topic, bundle or none; empty: the value in params_file.",
    ),
    DeclareLaunchArgument(
        "detector",
        default_value="",
        description="ONNX file of an object detector; empty: the value in params_file.",
    ),
    DeclareLaunchArgument(
        "detections",
        default_value="detections",
        description="Topic of the detected objects.",
    ),
    DeclareLaunchArgument(
        "detection_slop_s",
        default_value="",
        description="Maximum time between an image and its detections [s]; empty: the value in params_file.",
    ),
    DeclareLaunchArgument(
        "params_file",
        default_value=str(CONFIG / "caption.yaml"),
        description="Parameter file of the node.",
    ),
    DeclareLaunchArgument(
        "required",
        default_value="true",
        choices=["true", "false"],
        description="End the launch with status 1 when the node fails; false for a launch file that includes this one.",
    ),
    DeclareLaunchArgument(
        "namespace",
        default_value="",
        description="Namespace of the node and of its relative topics.",
    ),
    DeclareLaunchArgument(
        "use_sim_time",
        default_value="false",
        choices=["true", "false"],
        description="Use the time on /clock: for simulations and for bags played with --clock.",
    ),
    DeclareLaunchArgument(
        "log_level",
        default_value="info",
        choices=["debug", "info", "warn", "error", "fatal"],
        description="Minimum severity of logged messages.",
    ),
)


RENAMED_ARGUMENTS = {"detection_slop": "detection_slop_s"}
"""Argument names of an earlier version."""


def caption_node(context: LaunchContext) -> list[LifecycleNode]:
    """Create the node, which configures and activates itself unless the parameter `autostart` is false.

    Raises:
        ValueError: an argument has an invalid value; one sentence, which launch prints.
    """
    for old, new in RENAMED_ARGUMENTS.items():  # launch would ignore it
        if old in context.launch_configurations:
            raise ValueError(f"argument {old} is now {new}")
    value = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    overrides: dict[str, object] = {"use_sim_time": value["use_sim_time"] == "true"}
    overrides |= {name: value[name] for name in ("bundle", "engine", "objects_from", "detector") if value[name]}
    overrides |= {name: number(name, value[name]) for name in ("detection_slop_s",) if value[name]}
    params_file = Path(value["params_file"]).expanduser()
    if not params_file.is_file():  # launch would warn and start the node without the file
        raise ValueError(f"params_file: there is no file {params_file}")
    return [
        LifecycleNode(
            package=PACKAGE,
            executable="caption_node",
            name="caption_node",
            namespace=value["namespace"],
            parameters=[str(params_file), overrides],
            remappings=[
                ("image", value["image_topic"]),
                ("detections", value["detections"]),
                ("robot/caption", value["caption_topic"] or default_caption_topic(value["namespace"])),
            ],
            ros_arguments=["--log-level", value["log_level"]],
            output="screen",
            on_exit=end_with_the_node if value["required"] == "true" else None,
        )
    ]


def default_caption_topic(namespace: str) -> str:
    """Return the topic relative to the namespace: /robot/caption, or /<namespace>/caption."""
    return "caption" if namespace.strip("/") else "robot/caption"


def number(argument: str, value: str) -> float:
    """Convert the value of an argument to a number."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{argument} must be a number, not {value!r}") from None


def end_with_the_node(event: ProcessExited, context: LaunchContext) -> None:
    """Let `ros2 launch` exit with status 1 when the node failed; it does so only after an exception."""
    if event.returncode:
        raise RuntimeError(f"caption_node ended with status {event.returncode}")


def generate_launch_description() -> LaunchDescription:
    """Build the launch description."""
    # 1. Fast DDS profile with shared memory for images, unless the user has chosen a profile.
    profile = os.environ.get(PROFILE_VARIABLE) or str(CONFIG / "fastdds_shared_memory.xml")
    # 2. Arguments. 3. Node.
    return LaunchDescription(
        [SetEnvironmentVariable(PROFILE_VARIABLE, profile), *ARGUMENTS, OpaqueFunction(function=caption_node)]
    )
