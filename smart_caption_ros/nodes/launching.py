"""What the launch files of this package share: checks of arguments, and what the end of a node does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any


def number(argument: str, value: str, *, above: float = -math.inf) -> float:
    """Convert the value of an argument to a finite number.

    Raises:
        ValueError: it is none, or not above `above`; one sentence.
    """
    try:
        converted = float(value)
    except ValueError:
        converted = math.nan
    if not above < converted < math.inf:
        limit = "" if above == -math.inf else f" above {above:g}"
        raise ValueError(f"{argument} must be a number{limit}, not {value!r}")
    return converted


def boolean(argument: str, value: str) -> bool:
    """Convert the value of an argument, true or false in any case.

    Raises:
        ValueError: it is neither; one sentence.
    """
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{argument} must be true or false, not {value!r}")
    return value.lower() == "true"


def parameter_file(argument: str, value: str) -> str:
    """Return the path of a parameter file; launch would warn and start the node without a missing one.

    Raises:
        ValueError: there is no such file; one sentence.
    """
    path = Path(value).expanduser()
    if not path.is_file():
        raise ValueError(f"{argument}: there is no file {path}")
    return str(path)


def fail_with_the_process(event: Any, context: Any) -> None:
    """Let `ros2 launch` exit with status 1 when a process failed, for `on_exit`; it does so only after an exception.

    Args:
        event: launch's ProcessExited.
        context: launch's LaunchContext; not used.
    """
    if event.returncode:
        raise RuntimeError(f"{event.process_name} ended with status {event.returncode}")
