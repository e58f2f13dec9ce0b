"""The parameters of the log node; :mod:`smart_caption_ros.nodes.parameters` declares them."""

from smart_caption_ros.caption_log.recording import PICTURE_SIDE_PX
from smart_caption_ros.nodes.parameters import Changes, ParameterSpec

CAPTION_LOG_PARAMETERS = (
    ParameterSpec(
        "path",
        "",
        "File of the log, an SQLite database, the only file that the node writes. Empty: smart_caption_ros/captions.db "
        "in $XDG_DATA_HOME or ~/.local/share.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "caption_topics",
        (),
        "Topics of captions to write, relative to the node's namespace unless they begin with /; empty takes all "
        "topics of this type, also those that appear later.",
        Changes.ONLY_AT_START,
        pattern=(r"~?/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", "a topic"),
    ),
    ParameterSpec(
        "robot",
        "",
        "Name of the robot in the log; empty takes the node's namespace, or the name of this computer without one.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "max_size_mb",
        1000,
        "Size above which the captions written first are deleted [1e6 bytes]; 0 sets no bound.",
        Changes.ONLY_AT_START,
        limits=(0, 100_000_000),
    ),
    ParameterSpec(
        "max_age_days",
        0.0,
        "Time after which captions are deleted [days since they were written]; 0 sets no bound.",
        Changes.ONLY_AT_START,
        limits=(0.0, 36_500.0),
    ),
    ParameterSpec(
        "picture_side_px",
        PICTURE_SIDE_PX,
        "Longest side of the pictures [pixel]; 0 writes no pictures and subscribes to no images.",
        Changes.ONLY_AT_START,
        limits=(0, 4096),
    ),
    ParameterSpec(
        "map_frame",
        "map",
        "Frame of tf in which the pose of the robot is written; empty writes none. Needs tf2_ros.",
        Changes.ONLY_AT_START,
    ),
    ParameterSpec(
        "robot_frame",
        "base_link",
        "Frame of tf of the robot; empty takes the frame of the image.",
        Changes.ONLY_AT_START,
    ),
)
