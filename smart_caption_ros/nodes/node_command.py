"""What the commands of the nodes share.

A module with few imports, so that SIGINT and SIGTERM are handled before rclpy and the rest are imported.
"""

import importlib
import os
from collections.abc import Sequence

from smart_caption_ros.signals import exit_on_signal


def run_command(program: str, module: str, node_class: str, args: Sequence[str] | None = None) -> int:
    """Run a node of this package until it ends, or until SIGINT or SIGTERM.

    Args:
        args: command line with ROS arguments (`--ros-args ...`); None takes that of the process.

    Returns:
        The exit status: 1 when the node could not start or failed, else 0.
    """
    # Read when NumPy and SciPy are imported, which would start a thread for every core; their products are small.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with exit_on_signal():
        make_node = getattr(importlib.import_module(f"smart_caption_ros.nodes.{module}"), node_class)
        from smart_caption_ros.nodes.running import run_node

        return run_node(program, make_node, args)
