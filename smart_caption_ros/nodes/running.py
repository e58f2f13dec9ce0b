"""From the start of a node's process to its end: one way for every node of this package."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node
from rclpy.utilities import remove_ros_args

from smart_caption_ros.nodes.shared_files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file

_SPIN_S = 0.5


class RunnableNode(Protocol):
    """What `run_node` asks of a node beside being an rclpy Node."""

    exit_status: int
    """The status of the process when the node ends by itself, which it does by shutting its context down."""

    def close(self) -> None:
        """Stops the node's own threads. Called once, after the last callback; publishing is over by then."""


def run_node(name: str, make_node: Callable[[], RunnableNode], args: Sequence[str] | None) -> int:
    """Runs a node until it ends by itself, or until SIGINT or SIGTERM.

    Args:
        name: the program's name, for messages on the terminal.
        make_node: makes the node once rclpy is initialised; raises ValueError for wrong parameters.
        args: the command line with its ROS arguments; None means that of the process.

    Returns:
        The exit status: 0 after a signal, the node's own when it ended by itself, 1 when it could not start.
    """
    argv = list(sys.argv if args is None else [name, *args])
    parser = argparse.ArgumentParser(
        prog=name,
        usage=f"{name} [--help] [--ros-args [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO] ...]",
        description="A ROS 2 node; its topics, services and parameters are in docs/running_on_a_robot.md.",
    )
    # rclpy's own handlers end the spinning. Python's would raise KeyboardInterrupt on top, wherever the code
    # happens to be, and a terminal and `ros2 launch` together send SIGINT more than once.
    signal.signal(signal.SIGINT, lambda *_: None)
    logging.basicConfig(level=logging.WARNING, format=f"{name}: %(message)s")
    # Whole images between processes of one machine, also where no launch file sees to it.
    os.environ.setdefault(PROFILE_VARIABLE, str(config_file(FAST_DDS_PROFILE)))
    try:
        parser.parse_args(remove_ros_args(argv)[1:])
        rclpy.init(args=argv)
    except RuntimeError as error:  # rclpy's errors are RuntimeErrors
        return _failed(name, error)
    with contextlib.ExitStack() as stack:
        stack.callback(rclpy.try_shutdown)
        try:
            node = make_node()
            assert isinstance(node, Node)
            stack.callback(node.destroy_node)
            stack.callback(node.close)
            # Images and lifecycle, services that wait for the engine, and diagnostics must not wait for one another.
            executor = MultiThreadedExecutor(num_threads=4)
            stack.callback(executor.shutdown)
            executor.add_node(node)
        except (RuntimeError, ValueError) as error:
            return _failed(name, error) if rclpy.ok() else 0  # a signal takes ROS away from under a node that starts
        while rclpy.ok():
            _spin_once(executor, node)
    return node.exit_status


def _failed(name: str, error: Exception) -> int:
    print(f"{name}: {error}", file=sys.stderr)
    return 1


def _spin_once(executor: MultiThreadedExecutor, node: Node) -> None:
    """Runs what is due; a callback that fails costs that one call and never the node."""
    try:
        # Not for ever: rclpy may use up the wake-up of a signal a moment before it shuts the context down.
        executor.spin_once(timeout_sec=_SPIN_S)
    except (ExternalShutdownException, InvalidHandle):
        pass  # the end, or an event of something that was destroyed as it came
    except Exception:
        if rclpy.ok():
            node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
