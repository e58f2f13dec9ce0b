"""From the start of a node's process to its end: one way for every node of this package."""

from __future__ import annotations

import argparse
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
from rclpy.exceptions import InvalidHandle
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.nodes.signals import EndSignals

_POLL_S = 0.05  # how long a signal may wait to be noticed


class RunnableNode(Protocol):
    """What `run_node` asks of a node beside being an rclpy Node."""

    exit_status: int | None
    """None while the node runs; once it is set the process ends with it."""

    def close(self) -> None:
        """Finishes the node's work and stops its threads. Called once, after the last callback."""


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
    logging.basicConfig(level=logging.WARNING, format=f"{name}: %(message)s")
    # Whole images between processes of one machine, also where no launch file sees to it.
    os.environ.setdefault(PROFILE_VARIABLE, str(config_file(FAST_DDS_PROFILE)))
    with contextlib.ExitStack() as stack:
        # Not rclpy's own handlers: they take ROS away from under whatever is being started or published.
        signals = stack.enter_context(EndSignals())
        try:
            parser.parse_args(remove_ros_args(argv)[1:])
            rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
            stack.callback(rclpy.try_shutdown)
            node = make_node()
        except (RuntimeError, ValueError) as error:  # rclpy's errors are RuntimeErrors
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        assert isinstance(node, Node)
        stack.callback(node.destroy_node)
        stack.callback(node.close)
        # Images and lifecycle, services that wait for the engine, and diagnostics must not wait for one another.
        executor = MultiThreadedExecutor(num_threads=4)
        executor.add_node(node)
        ended = threading.Event()
        # The executor waits without a limit: each of its waits begins with asking every service and timer anew.
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
    """Runs what is due; a callback that fails costs that one call and never the node."""
    try:
        executor.spin_once()
    except InvalidHandle:
        pass  # an event of something that was destroyed as it came
    except Exception:
        node.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
