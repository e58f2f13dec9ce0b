"""Run a node as a process, from its command line to its exit status."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

import rclpy
import typer
from rclpy.exceptions import InvalidHandle
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.nodes.signals import EndSignals

_POLL_S = 0.05  # longest delay until a signal is handled


class RunnableNode(Protocol):
    """What :func:`run_node` needs of a node beside :class:`rclpy.node.Node`."""

    exit_status: int | None
    """None while the node runs; the process ends with this status as soon as it is set."""

    def close(self) -> None:
        """Finish the work in progress and stop all threads; called once, after the last callback."""


def run_node(name: str, make_node: Callable[[], RunnableNode], args: Sequence[str] | None) -> int:
    """Run a node until it sets its exit status, or until SIGINT or SIGTERM.

    Args:
        name: name of the program, for messages on the terminal.
        make_node: creates the node after rclpy is initialised; raises ValueError for invalid parameters.
        args: command line with ROS arguments; None takes that of the process.

    Returns:
        The exit status: 0 after a signal, the node's own if it set one, 1 if the node could not be created, 2 after
        arguments that are not ROS arguments.
    """
    argv = list(sys.argv if args is None else [name, *args])
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    @app.command(options_metavar="[--help] [--ros-args [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO] ...]")
    def node() -> None:
        """Run a ROS 2 node; its topics, services and parameters are in docs/running_on_a_robot.md."""
        raise typer.Exit(_run(name, make_node, argv))

    try:
        app(args=remove_ros_args(argv)[1:], prog_name=name)
    except SystemExit as end:
        return int(end.code or 0)
    except RuntimeError as error:  # the ROS arguments are malformed
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0


def _run(name: str, make_node: Callable[[], RunnableNode], argv: list[str]) -> int:
    """Run a node with a command line that has only ROS arguments."""
    logging.basicConfig(level=logging.WARNING, format=f"{name}: %(message)s")
    # Shared memory with room for images, for nodes that no launch file starts.
    os.environ.setdefault(PROFILE_VARIABLE, str(config_file(FAST_DDS_PROFILE)))
    with contextlib.ExitStack() as stack:
        # rclpy's own handlers shut the context down at once, while a node may still be starting or publishing.
        signals = stack.enter_context(EndSignals())
        try:
            rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
            stack.callback(rclpy.try_shutdown)
            node = make_node()
        except (RuntimeError, ValueError) as error:  # rclpy's errors are RuntimeErrors
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        assert isinstance(node, Node)
        stack.callback(node.destroy_node)
        stack.callback(node.close)
        # Four threads, so that lifecycle, services that wait for the engine, and diagnostics do not block one another.
        executor = MultiThreadedExecutor(num_threads=4)
        executor.add_node(node)
        ended = threading.Event()
        # The executor spins on a thread without a timeout, because every call of spin_once() rebuilds its wait set.
        spinning = threading.Thread(target=_spin, args=(executor, node, ended), name="executor", daemon=True)
        stack.callback(spinning.join)
        stack.callback(executor.shutdown)
        stack.callback(ended.set)
        spinning.start()
        while node.exit_status is None and not signals.arrived:
            time.sleep(_POLL_S)
        return node.exit_status or 0


def _spin(executor: MultiThreadedExecutor, node: Node, ended: threading.Event) -> None:
    while not ended.is_set():
        _spin_once(executor, node)


def _spin_once(executor: MultiThreadedExecutor, node: Node) -> None:
    """Run one callback; an exception in it is logged and does not end the node."""
    try:
        executor.spin_once()
    except InvalidHandle:
        pass  # an event of an entity that was destroyed meanwhile
    except Exception:
        node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
