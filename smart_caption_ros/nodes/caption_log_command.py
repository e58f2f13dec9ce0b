"""The command `smart-caption-log-node`, which runs the log node.

A module of its own with few imports, so that SIGINT and SIGTERM are handled before rclpy and the rest are imported.
"""

import sys
from collections.abc import Sequence

from smart_caption_ros.signals import exit_on_signal


def main(args: Sequence[str] | None = None) -> int:
    """Run the log node until SIGINT or SIGTERM.

    Args:
        args: command line with ROS arguments (`--ros-args ...`); None takes that of the process.

    Returns:
        The exit status: 1 when the log could not be opened, else 0.
    """
    with exit_on_signal():
        from smart_caption_ros.nodes.caption_log.node import CaptionLogNode
        from smart_caption_ros.nodes.running import run_node

        return run_node("smart-caption-log-node", CaptionLogNode, args)


if __name__ == "__main__":
    sys.exit(main())
