"""Run the demo: a camera node and the caption node as two processes over Fast DDS, and a listener in this process.

If the source has labelled objects, the camera node publishes them like a detector; else the objects are those of the
bundle's detector, if it has one.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.nodes.demo.listener import DemoListener
from smart_caption_ros.nodes.demo.plan import DETECTIONS_TOPIC, DemoOptions, DemoPlan, plan_demo
from smart_caption_ros.nodes.demo.processes import NodeProcess, environment, ros_variables
from smart_caption_ros.nodes.demo.report import CAPTIONS_FILE, OVERLAY_FOLDER, SHEET_FILE, DemoReport
from smart_caption_ros.signals import EndSignals
from smart_caption_ros.text import MAX_SENTENCE, visible


class DemoError(ExpectedError):
    """The demo cannot run, or did not caption every frame."""


def run_demo(options: DemoOptions) -> int:
    """Caption a source over ROS 2, print the captions as they arrive and write them to a folder.

    Returns:
        The exit status: 0 when every published frame got a caption, 130 after Ctrl-C, else 1.
    """
    console, errors = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True)
    try:
        with contextlib.ExitStack() as stack:
            signals = stack.enter_context(EndSignals())
            logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="smart_caption_demo_")))
            stack.enter_context(environment(_variables(logs)))
            _run(options, console, logs, signals)
    except (ExpectedError, OSError) as error:
        lines = [escape(visible(line, MAX_SENTENCE)) for line in str(error).splitlines()]
        errors.print("\n".join([f"[red]demo:[/red] {lines[0]}", *lines[1:]]))
        return 1
    except KeyboardInterrupt:
        errors.print("interrupted")
        return 130
    return 0


def _variables(logs: Path) -> dict[str, str]:
    """Return the environment variables of a separate ROS domain, without those that the user has set."""
    variables = ros_variables(logs)
    if "ROS_DOMAIN_ID" in os.environ:  # the user's domain, with the user's discovery range
        del variables["ROS_AUTOMATIC_DISCOVERY_RANGE"]
    return {name: value for name, value in variables.items() if name not in os.environ}


def _run(options: DemoOptions, console: Console, logs: Path, signals: EndSignals) -> None:
    end_s = time.monotonic() + options.timeout_s
    plan = plan_demo(options, on_frame=signals.raise_if_arrived)
    for note in plan.notes:
        console.print(escape(visible(note, MAX_SENTENCE)))
    needed_s = len(plan.frames) / options.rate_hz
    if needed_s > options.timeout_s:
        raise DemoError(
            f"{len(plan.frames)} frames at {options.rate_hz:g} Hz take {needed_s:.0f} s, and the time limit is "
            f"{options.timeout_s:g} s: allow more time, or fewer frames"
        )
    with contextlib.ExitStack() as stack:
        report = DemoReport(options.output)
        stack.callback(report.close)
        caption_node, camera_node = processes = [
            stack.enter_context(NodeProcess(f"smart_caption_ros.nodes.{name}_command", arguments, logs / f"{name}.log"))
            for name, arguments in (
                ("caption", plan.caption_node_arguments()),
                ("camera", plan.camera_node_arguments()),
            )
        ]
        listener = stack.enter_context(DemoListener(console, plan, report, signals))
        _announce(console, plan)
        with console.status("the caption node loads its model ..."):
            failure = "the caption node did not start in time"
            _spin(listener, listener.has_caption_publisher, processes, end_s, failure)
        # The camera node waits for two subscribers: the caption node and this process.
        listener.subscribe_to_images()
        failure = "the camera did not finish"
        _spin(listener, lambda: listener.has_all_images() or camera_node.exit_status == 0, processes, end_s, failure)
        camera_node.stop()
        _spin(listener, listener.is_complete, [caption_node], end_s)
        problems = listener.problems()
        if (status := caption_node.stop()) != 0:
            problems.append(f"the caption node ended with status {status}")
    if problems:
        raise DemoError("\n".join([*problems, "the end of the caption node's log:", caption_node.log_tail()]))
    console.print(
        f"{len(listener.answered)} of {len(listener.answered)} frames captioned; see "
        f"{options.output / CAPTIONS_FILE}, {options.output / OVERLAY_FOLDER} and {options.output / SHEET_FILE}"
    )


def _announce(console: Console, plan: DemoPlan) -> None:
    description = escape(visible(plan.description, MAX_SENTENCE))
    console.print(f"{description}, at {plan.options.rate_hz:g} Hz over ROS 2 domain {os.environ['ROS_DOMAIN_ID']}")
    console.print(
        f"objects: the sequences' ground truth, published on {DETECTIONS_TOPIC} with the stamps of the frames"
        if plan.knows_objects
        else "objects: those of the bundle's own detector, if it has one"
    )


def _spin(
    listener: DemoListener,
    done: Callable[[], bool],
    processes: Sequence[NodeProcess],
    end_s: float,
    failure: str = "",
) -> None:
    """Listen until `done` returns True.

    Args:
        processes: the caption node, which must not end, and others, which must not fail.
        failure: error to report when the time is over; empty returns without an error.

    Raises:
        DemoError: a process ended or failed, or the time is over.
    """
    while not done():
        for process in processes:
            if process.exit_status not in (None, 0) or (process.exit_status == 0 and process is processes[0]):
                raise DemoError(f"{process.module} ended with status {process.exit_status}:\n{process.log_tail()}")
        if time.monotonic() > end_s:
            if not failure:
                return
            logs = (f"{process.module}:\n{process.log_tail()}" for process in processes)
            raise DemoError("\n".join([failure, *logs]))
        listener.spin_once()
