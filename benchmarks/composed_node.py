"""Camera node and caption node in one process and one executor, which `benchmarks/composition.py` measures."""

import contextlib
import os

import rclpy
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.nodes.allocator import keep_freed_memory
from smart_caption_ros.nodes.camera.node import CameraNode
from smart_caption_ros.nodes.caption.node import CaptionNode


def main() -> None:
    """Run both nodes until SIGINT; the parameters are in a file that names the nodes."""
    keep_freed_memory()
    os.environ.setdefault(PROFILE_VARIABLE, str(config_file(FAST_DDS_PROFILE)))
    rclpy.init()
    executor = MultiThreadedExecutor(num_threads=4)
    for node in (CaptionNode(), CameraNode()):
        executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        executor.spin()
    os._exit(0)  # nothing is measured any more


if __name__ == "__main__":
    main()
