"""The command `smart-caption-node`, which runs the caption node.

A module of its own with few imports, so that SIGINT and SIGTERM are handled before rclpy and the rest are imported.
"""

import os
import sys
from collections.abc import Sequence

from smart_caption_ros.signals import exit_on_signal


def main(args: Sequence[str] | None = None) -> int:
    """Run the caption node until SIGINT or SIGTERM.

    Args:
        args: command line with ROS arguments (`--ros-args ...`); None takes that of the process.

    Returns:
        The exit status: 1 when the node could not start itself, else 0.
    """
    # Read when NumPy and SciPy are imported, which would start a thread for every core; their products are small.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with exit_on_signal():
        from smart_caption_ros.nodes.caption.node import CaptionNode
        from smart_caption_ros.nodes.running import run_node

        return run_node("smart-caption-node", CaptionNode, args)


if __name__ == "__main__":
    sys.exit(main())
