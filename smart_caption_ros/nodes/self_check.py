"""What of ROS works in this environment, tried out; run as a process of its own by `smart-caption doctor`.

A process, because a middleware that is badly set up may end the process that loads it, and because nothing
outside this folder loads rclpy.
"""

from __future__ import annotations

import json
import sys


def report() -> dict[str, str]:
    """What was found, up to the first failure, which is under "error" with its stage under "failed"."""
    found: dict[str, str] = {}
    stage = "rclpy"
    try:
        import rclpy
        from rclpy.utilities import get_rmw_implementation_identifier

        stage = "middleware"
        found["middleware"] = get_rmw_implementation_identifier()
        rclpy.init(args=[])
        node = rclpy.create_node("_smart_caption_doctor")

        stage = "messages"
        from smart_caption_ros.msg import Caption

        node.create_publisher(Caption, "_smart_caption_doctor", 1)
        found["messages"] = Caption.__module__
        node.destroy_node()
        rclpy.try_shutdown()
    except Exception as error:
        found["failed"] = stage
        found["error"] = " ".join(str(error).split()) or type(error).__name__
    return found


if __name__ == "__main__":
    json.dump(report(), sys.stdout)
