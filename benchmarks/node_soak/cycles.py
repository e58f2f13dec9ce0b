"""Lifecycle cycles of the caption node: configure, activate, deactivate and clean up, and the memory after each."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.caption_listener import NodeSettings, parameter_arguments
from benchmarks.node_soak.records import Record
from benchmarks.node_soak.user import NoAnswerError, User
from benchmarks.process_use import resident_mb
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables

TRANSITIONS = ("configure", "activate", "deactivate", "cleanup")
MAX_GROWTH_MB = 2.0


def run_cycles(
    node: NodeSettings,
    cycles: int,
    warm_up: int,
    folder: Path,
    on_progress: Callable[[int], object] = lambda cycle: None,
) -> dict[str, Any]:
    """Run lifecycle cycles.

    Args:
        cycles: number of measured cycles.
        warm_up: number of cycles before them.
        folder: the logs are written into it.
        on_progress: called with the number of cycles done, after each.

    Returns:
        The figures, and ``problems``, one sentence each; empty if the node passed.

    Raises:
        NoAnswerError: the node did not answer a transition, or refused it.
        ProcessLookupError: the node has ended.
    """
    after_mb: list[float] = []
    problems: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(environment(ros_variables(folder / "logs")))
        user = stack.enter_context(User.opened(Record()))
        arguments = parameter_arguments({**node.parameters, "autostart": "false"})
        process = stack.enter_context(NodeProcess(node.module, arguments, folder / "cycles.log"))
        user.process = process
        for cycle in range(warm_up + cycles):
            for transition in TRANSITIONS:
                if not user.change_state(transition):
                    raise NoAnswerError(
                        f"the transition {transition} of cycle {cycle + 1} failed:\n{process.log_tail()}"
                    )
            after_mb.append(resident_mb(process.pid)["resident"])
            on_progress(cycle + 1)
    growth_mb = growth(after_mb[warm_up:])
    if growth_mb > MAX_GROWTH_MB:
        problems.append(
            f"the resident memory grew by {growth_mb:.2f} MB in {cycles} lifecycle cycles, "
            f"and {MAX_GROWTH_MB:g} MB are allowed"
        )
    return {
        "cycles": cycles,
        "warm_up_cycles": warm_up,
        "resident_mb_after_cleanup": {
            "first": after_mb[0],
            "after_warm_up": after_mb[warm_up],
            "last": after_mb[-1],
            "most": max(after_mb),
        },
        "growth_mb": round(growth_mb, 2),
        "growth_is": "median of the last quarter of the measured cycles less that of the first quarter",
        "problems": problems,
    }


def growth(after_mb: Sequence[float]) -> float:
    """Return the median of the last quarter less the median of the first one; at least one value each."""
    quarter = max(1, len(after_mb) // 4)
    return float(np.median(after_mb[-quarter:]) - np.median(after_mb[:quarter]))
