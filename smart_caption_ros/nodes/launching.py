"""Functions that the launch files of this package share: arguments, their checks, and actions after a node's end.

This module does not import launch, which has no Python wheel, so that it can be tested without. Functions that take the
value of an argument raise ValueError, with one sentence, if it is invalid.
"""

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

CAPTION_ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "image_topic": (
        "image",
        "sensor_msgs/Image topic of the camera; compressed images are taken from <image_topic>/compressed. A name that "
        "ends in /compressed takes compressed images only.",
    ),
    "caption_topic": (
        "",
        "Topic of the captions; text and overlays are on <caption_topic>/text and <caption_topic>/image; empty: "
        "robot/caption, or caption in a namespace.",
    ),
    "cameras": (
        "",
        "Names of several cameras: front,rear. image_topic, detections and caption_topic then contain {camera}, which "
        "stands for the name, or are relative to a namespace of that name; empty: one camera.",
    ),
    "detections": ("detections", "Topic of the detected objects."),
    "bundle": ("", "Folder of the bundle to load; empty: the value in params_file."),
    "detector": ("", "ONNX file of an object detector; empty: the value in params_file."),
    "params_file": ("", "Parameter file of the node; empty: that of this package."),
    "respawn": ("false", "Start the node again whenever it ends."),
    "namespace": ("", "Namespace of the node and of its relative topics."),
    "use_sim_time": (
        "",
        "Use the time on /clock, for simulations and for bags played with --clock; empty: the value in params_file or "
        "of the including launch file.",
    ),
    "log_level": ("info", "Minimum severity of logged messages: debug, info, warn, error or fatal."),
}
"""Default value and description of each argument."""

_LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")


def caption_parameters(values: Mapping[str, str], config: Path) -> list[str | dict[str, Any]]:
    """Return the parameters of the caption node: the parameter file, and the values that arguments override."""
    overrides: dict[str, Any] = {name: values[name] for name in ("bundle", "detector") if values[name]}
    if values["use_sim_time"]:
        overrides["use_sim_time"] = boolean("use_sim_time", values["use_sim_time"])
    if cameras := names("cameras", values["cameras"]):
        overrides["cameras"] = cameras
    file = parameter_file("params_file", values["params_file"] or str(config / "caption.yaml"))
    return [file, overrides] if overrides else [file]


def caption_remappings(values: Mapping[str, str], pushed_namespace: str = "") -> list[tuple[str, str]]:
    """Return the remappings of the caption node.

    Args:
        pushed_namespace: namespace pushed by an including launch file; launch_ros puts it before that of the node.
    """
    cameras = names("cameras", values["cameras"])
    in_namespace = any(namespace.strip("/") for namespace in (pushed_namespace, values["namespace"]))
    caption = "caption" if in_namespace or cameras else "robot/caption"
    remappings = []
    for argument, name, moved in (
        ("image_topic", "image", values["image_topic"]),
        ("detections", "detections", values["detections"]),
        ("caption_topic", "caption", values["caption_topic"] or caption),
    ):
        if not cameras:
            remappings.append(("robot/caption" if name == "caption" else name, topic(argument, moved)))
            continue
        if moved.startswith(("/", "~")) and "{camera}" not in moved:
            raise ValueError(f"{argument}: with several cameras the topic has to contain {{camera}}, unlike {moved}")
        moved = moved if "{camera}" in moved else f"{{camera}}/{moved}"
        remappings += [(f"{camera}/{name}", topic(argument, moved.replace("{camera}", camera))) for camera in cameras]
    return remappings


def unknown_arguments(given: Sequence[str], file: Path, *tables: Iterable[str]) -> str:
    """Return a warning about unknown arguments, which launch ignores; empty if there are none.

    Args:
        given: arguments on the command line, as name:=value.
        file: the launch file. It is not checked where another file includes it, whose arguments it does not know.
        tables: names of the arguments of this file and of the files that it includes.
    """
    if not any(Path(argument).name == file.name for argument in sys.argv):
        return ""
    known = {name for table in tables for name in table}
    unknown = [name for name, separator, _ in (argument.partition(":=") for argument in given) if separator]
    unknown = [name for name in unknown if name not in known]
    return f"{file.name} has no argument {', '.join(unknown)}: the value is not used" if unknown else ""


def log_level(argument: str, value: str) -> str:
    """Return the severity in the value of an argument, in lower case."""
    if value.lower() not in _LOG_LEVELS:
        raise ValueError(f"{argument} must be one of {', '.join(_LOG_LEVELS)}, not {value!r}")
    return value.lower()


def positive_number(argument: str, value: str) -> float:
    """Convert the value of an argument to a finite number above 0."""
    try:
        converted = float(value)
    except ValueError:
        converted = math.nan
    if not 0 < converted < math.inf:
        raise ValueError(f"{argument} must be a number above 0, not {value!r}")
    return converted


def boolean(argument: str, value: str) -> bool:
    """Convert the value of an argument: true or false, in lower or upper case."""
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{argument} must be true or false, not {value!r}")
    return value.lower() == "true"


def parameter_file(argument: str, value: str) -> str:
    """Return the path of a parameter file; if it were missing, launch would warn and start the node without it."""
    path = Path(value).expanduser()
    if not path.is_file():
        raise ValueError(f"{argument}: there is no file {path}")
    return str(path)


def topic(argument: str, value: str) -> str:
    """Check the name of a topic, relative or full, and return it."""
    if not re.fullmatch(r"(~/|/)?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", value, re.ASCII):
        raise ValueError(f"{argument} must be the name of a topic, as /camera/image_raw, not {value!r}")
    return value


def names(argument: str, value: str) -> list[str]:
    """Return the names in the value of an argument: front,rear or [front, rear] or "front rear"."""
    given = re.sub(r"[\[\]'\",]", " ", value).split()
    if not all(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) for name in given):
        raise ValueError(f"{argument} must be names of letters, digits and underscores, as front,rear, not {value!r}")
    return given


def remember_failure(event: Any, context: Any) -> None:
    """Make `ros2 launch` exit with status 1 at its end if a process failed; the other processes go on.

    A handler for `on_exit`. launch exits with status 1 after an exception in its event loop; after an exception in a
    handler it would end at once.
    """
    if event.returncode:
        message = f"{event.process_name} ended with status {event.returncode}"
        context.asyncio_loop.call_exception_handler({"message": message})


def fail_with_the_process(event: Any, context: Any) -> None:
    """Make `ros2 launch` end with status 1 if a process failed: a handler for `on_exit`, which raises an exception."""
    if event.returncode:
        raise RuntimeError(f"{event.process_name} ended with status {event.returncode}")
