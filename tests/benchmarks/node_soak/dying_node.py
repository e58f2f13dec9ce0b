"""The caption node as a process that ends without a reason three seconds after it began to caption."""

import os
import sys
import threading

from smart_caption_ros.nodes import running
from smart_caption_ros.nodes.caption import node
from smart_caption_ros.nodes.caption.camera import Camera
from smart_caption_ros.nodes.caption.worker import Worker


class DyingWorker(Worker):
    """Ends the process."""

    def request_turn(self, camera: Camera) -> None:
        """Start to count down at the first image."""
        if not hasattr(self, "_timer"):
            self._timer = threading.Timer(3.0, os._exit, args=(3,))
            self._timer.start()
        super().request_turn(camera)


if __name__ == "__main__":
    node.Worker = DyingWorker  # type: ignore[misc]
    sys.exit(running.run_node("dying_node", node.CaptionNode, None))
