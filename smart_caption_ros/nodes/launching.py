"""What the launch files of this package share: checks of arguments, and what the end of a node does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


def number(argument: str, value: str, *, above: float = -math.inf, minimum: float = -math.inf) -> float:
    """Convert the value of an argument to a finite number.

    Raises:
        ValueError: it is none, or not above `above`, or below `minimum`; one sentence.
    """
    try:
        converted = float(value)
    except ValueError:
        converted = math.nan
    if not (above < converted < math.inf and converted >= minimum):
        limit = f" above {above:g}" if above > -math.inf else f" of {minimum:g} or more" if minimum > -math.inf else ""
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


def topic(argument: str, value: str) -> str:
    """Return the name of a topic, relative or full.

    Raises:
        ValueError: it is none; one sentence.
    """
    if not re.fullmatch(r"(~/|/)?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", value, re.ASCII):
        raise ValueError(f"{argument} must be the name of a topic, as /camera/image_raw, not {value!r}")
    return value


def names(argument: str, value: str) -> list[str]:
    """Return the names in the value of an argument: front,rear or [front, rear] or "front rear".

    Raises:
        ValueError: one is not a letter and letters, digits and underscores after it; one sentence.
    """
    given = re.sub(r"[\[\]'\",]", " ", value).split()
    if not all(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) for name in given):
        raise ValueError(f"{argument} must be names of letters, digits and underscores, as front,rear, not {value!r}")
    return given


def on_exit(*, required: bool, respawn: bool = False) -> Callable[[Any, Any], None] | None:
    """Return what the end of a node does, the same in all launch files: one that fails gives the launch status 1.

    Args:
        required: whether the launch ends with the node.
        respawn: whether the node starts again instead, and its end means nothing.
    """
    if respawn:
        return None
    return fail_with_the_process if required else remember_failure


def remember_failure(event: Any, context: Any) -> None:
    """Let `ros2 launch` exit with status 1 in the end when a process failed, for `on_exit`; the others go on.

    launch has this status after an exception in its loop, and ends at once after one in a handler.

    Args:
        event: launch's ProcessExited.
        context: launch's LaunchContext.
    """
    if event.returncode:
        message = f"{event.process_name} ended with status {event.returncode}"
        context.asyncio_loop.call_exception_handler({"message": message})


def fail_with_the_process(event: Any, context: Any) -> None:
    """Let `ros2 launch` exit with status 1 when a process failed, for `on_exit`; it does so only after an exception.

    Args:
        event: launch's ProcessExited.
        context: launch's LaunchContext; not used.
    """
    if event.returncode:
        raise RuntimeError(f"{event.process_name} ended with status {event.returncode}")
