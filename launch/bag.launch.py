"""Play a bag and caption it: `ros2 launch smart_caption_ros bag.launch.py bag:=/data/run_7 topic:=/camera/image_raw`.

`ros2 bag play` plays the bag if rosbag2 is installed, with the clock of the recording; otherwise the camera node
publishes the images of one topic with the present time. The launch ends with the bag. The arguments of
caption.launch.py can be given, too.
"""

from pathlib import Path

# ruff: noqa: I001  (the folder launch/ is not the package launch)

from ament_index_python.packages import PackageNotFoundError, get_package_prefix, get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from smart_caption_ros.nodes.launching import (
    CAPTION_ARGUMENTS,
    fail_with_the_process,
    positive_number,
    unknown_arguments,
)
from smart_caption_ros.sources import SourceError
from smart_caption_ros.sources.bag import DECODERS, Bag, choose_image_topic

PACKAGE = "smart_caption_ros"
SHARE = Path(get_package_share_directory(PACKAGE))
ROSBAG2 = ("ros2bag", "rosbag2_transport", "rosbag2_py")
STORAGE_IDS = {".mcap": "mcap", ".db3": "sqlite3"}  # for a file without its folder
COMPRESSED = "/compressed"
END_TIMEOUT_S = "15"

ARGUMENTS = (
    DeclareLaunchArgument(
        "bag",
        description="Folder of the bag, or its .mcap or .db3 file.",
    ),
    DeclareLaunchArgument(
        "topic",
        default_value="",
        description="Image topic of the bag; empty: the only one.",
    ),
    DeclareLaunchArgument(
        "rate",
        default_value="1.0",
        description="Speed: 1.0 is that of the recording.",
    ),
    DeclareLaunchArgument(
        "output",
        default_value="",
        description="Folder of a new bag with the captions, written by ros2 bag record; empty: none. `smart-caption "
        "describe BAG -o FILE.mcap` captions every image, and needs no ROS.",
    ),
)


def actions(context: LaunchContext) -> list[GroupAction]:
    """Create the player, the caption node and the recorder.

    Raises:
        ValueError: an argument has an invalid value; one sentence, which launch prints.
    """
    value = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in ARGUMENTS}
    rate = positive_number("rate", value["rate"])
    output = Path(value["output"]).expanduser() if value["output"] else None
    has_rosbag2 = all(is_installed(package) for package in ROSBAG2)
    if output is not None and not has_rosbag2:
        raise ValueError("output needs ros2 bag record, a part of rosbag2; or: smart-caption describe BAG -o FILE.mcap")
    if output is not None and output.exists():
        raise ValueError(f"output: {output} exists already")
    bag = Path(value["bag"]).expanduser()
    if not bag.exists():
        raise ValueError(f"bag: there is no file or folder {bag}")
    try:
        if has_rosbag2:
            topic = topic_with_rosbag2(bag, value["topic"] or None)
            player: ExecuteProcess | Node = rosbag2_player(bag, topic, rate)
        else:
            recording = Bag(str(bag), topic=value["topic"] or None)
            topic = recording.topic
            player = camera_node(recording, rate)
    except SourceError as error:
        raise ValueError(f"bag: {error}") from None
    played = {"image_topic": topic, "use_sim_time": "true"}
    if not has_rosbag2:
        played = {"image_topic": topic.removesuffix(COMPRESSED)}
    caption = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(SHARE / "launch" / "caption.launch.py")),
        launch_arguments=played.items(),
    )
    recorder = [record(output)] if output is not None else []
    warning = unknown_arguments(context.argv, Path(__file__), value, CAPTION_ARGUMENTS.keys() - played.keys())
    # The caption node comes first, because launch leaves the processes behind that it started before a wrong argument.
    return [GroupAction([*([LogInfo(msg=warning)] if warning else []), caption, *recorder, player])]


def topic_with_rosbag2(bag: Path, topic: str | None) -> str:
    """Find the image topic with rosbag2, so that no package of PyPI is needed.

    Raises:
        SourceError: the bag cannot be read, or has no such topic; one sentence.
    """
    from rosbag2_py import Info

    try:
        metadata = Info().read_metadata(str(bag), STORAGE_IDS.get(bag.suffix, ""))
    except RuntimeError as error:
        raise SourceError(f"{bag} cannot be read: {' '.join(str(error).split())}") from None
    counts = {
        found.topic_metadata.name: found.message_count
        for found in metadata.topics_with_message_count
        if found.topic_metadata.type in DECODERS
    }
    return choose_image_topic(str(bag), counts, topic)


def rosbag2_player(bag: Path, topic: str, rate: float) -> ExecuteProcess:
    """Play the topic with rosbag2, with the clock of the recording."""
    return ExecuteProcess(
        # The path comes first, because --topics takes all arguments up to the next option.
        cmd=["ros2", "bag", "play", str(bag), "--clock", "--rate", f"{rate:g}", "--topics", topic],
        output="screen",
        sigterm_timeout=END_TIMEOUT_S,
        on_exit=end_with_the_player,
    )


def camera_node(bag: Bag, rate: float) -> Node:
    """Play the topic with the camera node, at the mean rate of the recording."""
    return Node(
        package=PACKAGE,
        executable="camera_node",
        name="camera_node",
        parameters=[
            {"source": bag.spec, "bag_topic": bag.topic, "rate_hz": bag.mean_rate_hz * rate, "loop": False},
            {"wait_for_subscribers": 1},
        ],
        remappings=[("image", bag.topic.removesuffix(COMPRESSED))],
        output="screen",
        sigterm_timeout=END_TIMEOUT_S,
        on_exit=end_with_the_player,
    )


def record(output: Path) -> ExecuteProcess:
    """Record the captions and their text."""
    return ExecuteProcess(
        cmd=["ros2", "bag", "record", "--output", str(output), "--regex", ".*/caption(/text)?$"],
        output="screen",
        sigterm_timeout=END_TIMEOUT_S,
    )


def end_with_the_player(event: ProcessExited, context: LaunchContext) -> list[Shutdown]:
    """End the launch with the bag; with status 1 if the player failed."""
    fail_with_the_process(event, context)
    return [Shutdown(reason="the bag has been played")]


def is_installed(package: str) -> bool:
    """Return whether a ROS package is installed."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def generate_launch_description() -> LaunchDescription:
    """Build the launch description."""
    return LaunchDescription([GroupAction([*ARGUMENTS, OpaqueFunction(function=actions)])])
