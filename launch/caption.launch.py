"""Start the caption node: `ros2 launch smart_caption_ros caption.launch.py image_topic:=/camera/image_raw`.

`ros2 launch smart_caption_ros caption.launch.py --show-args` lists the arguments. A launch file that includes this one
keeps its own arguments and environment: what is set here stays here.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode

from smart_caption_ros.nodes.launching import (
    boolean,
    names,
    number,
    on_exit,
    parameter_file,
    topic,
)

PACKAGE = "smart_caption_ros"
END_TIMEOUT_S = "15"  # the node answers the image in progress; launch's default of 5 s is short for a busy machine
CONFIG = Path(get_package_share_directory(PACKAGE), "config")
PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
OWN_PROFILE, NO_PROFILE = "shared_memory", "none"

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
        "cameras",
        default_value="",
        description="Names of several cameras: front,rear. image_topic, detections and "
        "caption_topic then have {camera} in the place of the name, or are in its namespace; empty: one camera.",
    ),
    DeclareLaunchArgument(
        "transport",
        default_value="",
        choices=["", "auto", "raw", "compressed"],
        description="Image topic to subscribe to, see the parameter image_transport; empty: the value in params_file.",
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
        "autostart",
        default_value="",
        description="Configure and activate the node when it starts; false leaves that to a lifecycle manager; empty: "
        "the value in params_file.",
    ),
    DeclareLaunchArgument(
        "respawn",
        default_value="false",
        description="Start the node again whenever it ends.",
    ),
    DeclareLaunchArgument(
        "respawn_delay_s",
        default_value="2.0",
        description="Time between the end of the node and its next start [s].",
    ),
    DeclareLaunchArgument(
        "required",
        default_value="false",
        description="End the launch, with all that was launched, when the node fails and does not respawn; false: "
        "go on. The launch ends with status 1 in either case.",
    ),
    DeclareLaunchArgument(
        "node_name",
        default_value="caption_node",
        description="Name of the node.",
    ),
    DeclareLaunchArgument(
        "namespace",
        default_value="",
        description="Namespace of the node and of its relative topics.",
    ),
    DeclareLaunchArgument(
        "use_sim_time",
        default_value="",
        description="Use the time on /clock, for simulations and for bags played with --clock; empty: the value in "
        "params_file or of the including launch file.",
    ),
    DeclareLaunchArgument(
        "fast_dds_profile",
        default_value=OWN_PROFILE,
        description="Fast DDS profile of the node's process: shared_memory for the profile in this package, unless "
        f"{PROFILE_VARIABLE} names another or the environment chooses isolation, discovery or transports; none for "
        "Fast DDS's defaults; or an XML file.",
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
    overrides: dict[str, object] = {
        name: boolean(name, value[name]) for name in ("use_sim_time", "autostart") if value[name]
    }
    overrides |= {name: value[name] for name in ("bundle", "engine", "objects_from", "detector") if value[name]}
    overrides |= {"image_transport": value["transport"]} if value["transport"] else {}
    overrides |= {name: number(name, value[name]) for name in ("detection_slop_s",) if value[name]}
    cameras = names("cameras", value["cameras"])
    overrides |= {"cameras": cameras} if cameras else {}
    respawn, required = (boolean(name, value[name]) for name in ("respawn", "required"))
    # An including launch file may have pushed a namespace, which launch_ros puts before the node's own.
    namespaces = (context.launch_configurations.get("ros_namespace", ""), value["namespace"])
    return [
        LifecycleNode(
            package=PACKAGE,
            executable="caption_node",
            name=value["node_name"],
            namespace=value["namespace"],
            parameters=[parameter_file("params_file", value["params_file"]), *([overrides] if overrides else [])],
            remappings=remappings_of(cameras, value)
            or [
                ("image", topic("image_topic", value["image_topic"])),
                ("detections", topic("detections", value["detections"])),
                (
                    "robot/caption",
                    topic("caption_topic", value["caption_topic"] or default_caption_topic(*namespaces)),
                ),
            ],
            ros_arguments=["--log-level", value["log_level"]],
            additional_env=profile_environment(value["fast_dds_profile"]),
            output="screen",
            sigterm_timeout=END_TIMEOUT_S,
            respawn=respawn,
            respawn_delay=number("respawn_delay_s", value["respawn_delay_s"], minimum=0.0),
            on_exit=on_exit(required=required, respawn=respawn),
        )
    ]


def default_caption_topic(*namespaces: str) -> str:
    """Return the topic relative to the namespace: /robot/caption, or /<namespace>/caption."""
    return "caption" if any(namespace.strip("/") for namespace in namespaces) else "robot/caption"


def remappings_of(cameras: list[str], value: dict[str, str]) -> list[tuple[str, str]]:
    """Return the remappings of the topics of several cameras.

    Raises:
        ValueError: an argument gives all cameras the same topic; one sentence.
    """
    remappings = []
    for argument, name, moved in (
        ("image_topic", "image", value["image_topic"]),
        ("detections", "detections", value["detections"]),
        ("caption_topic", "caption", value["caption_topic"] or "caption"),
    ):
        if cameras and moved.startswith(("/", "~")) and "{camera}" not in moved:
            raise ValueError(f"{argument}: several cameras need {{camera}} in the place of the name, not {moved}")
        moved = moved if "{camera}" in moved else f"{{camera}}/{moved}"
        remappings += [(f"{camera}/{name}", topic(argument, moved.replace("{camera}", camera))) for camera in cameras]
    return remappings


def profile_environment(profile: str) -> dict[str, str]:
    """Return the variable that gives the node's process a Fast DDS profile; the node chooses its own without it."""
    if profile == OWN_PROFILE:
        return {}
    if profile == NO_PROFILE:
        return {PROFILE_VARIABLE: ""}
    path = Path(profile).expanduser()
    if not path.is_file():  # Fast DDS would print an error and go on
        raise ValueError(f"fast_dds_profile must be {OWN_PROFILE}, {NO_PROFILE} or a file: there is no file {path}")
    return {PROFILE_VARIABLE: str(path)}


def generate_launch_description() -> LaunchDescription:
    """Build the launch description; the group keeps the arguments' values from an including launch file."""
    return LaunchDescription([GroupAction([*ARGUMENTS, OpaqueFunction(function=caption_node)])])
