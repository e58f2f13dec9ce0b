"""Check that ROS 2 works in this environment; `smart-caption doctor` runs this module as a process.

It is a separate process because a middleware with a wrong configuration may abort the process that loads it, and
because only this package imports rclpy.
"""

import json
import sys

from smart_caption_ros.text import error_line


def report() -> dict[str, str]:
    """Create a node and a publisher.

    Returns:
        "middleware" and "messages", as far as they were found before the first failure; after a failure also the stage
        as "failed" (rclpy, middleware or messages) and the reason as "error".
    """
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
        found["error"] = error_line(error)
    return found


if __name__ == "__main__":
    json.dump(report(), sys.stdout)
