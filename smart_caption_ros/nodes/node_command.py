"""Run a node as a command.

This module has few imports, so that SIGINT and SIGTERM are handled while rclpy and the node are imported.
"""

import importlib
import os
from collections.abc import Sequence

from smart_caption_ros.signals import exit_on_signal


def run_command(program: str, module: str, node_class: str, args: Sequence[str] | None = None) -> int:
    """Run a node of this package until it ends, or until SIGINT or SIGTERM.

    Args:
        args: command line with ROS arguments (`--ros-args ...`); None takes the command line of the process.

    Returns:
        The exit status, see :func:`smart_caption_ros.nodes.running.run_node`.
    """
    # NumPy and SciPy read this when they are imported. By default they start a thread per core, which is of no use for
    # the small matrices of a node.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with exit_on_signal():
        make_node = getattr(importlib.import_module(f"smart_caption_ros.nodes.{module}"), node_class)
        from smart_caption_ros.nodes.running import run_node

        return run_node(program, make_node, args)
