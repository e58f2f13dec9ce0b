"""The caption node as a process that ends without a reason three seconds after it began to caption."""

import os
import sys
import threading

from smart_caption_ros.nodes import caption_node, caption_worker, running
from smart_caption_ros.nodes.camera_stream import CameraStream, ReceivedImage


class DyingWorker(caption_worker.CaptionWorker):
    """Ends the process."""

    def put(self, camera: CameraStream, image: ReceivedImage) -> None:
        """Start to count down at the first image."""
        if not hasattr(self, "_timer"):
            self._timer = threading.Timer(3.0, os._exit, args=(3,))
            self._timer.start()
        super().put(camera, image)


if __name__ == "__main__":
    caption_node.CaptionWorker = DyingWorker  # type: ignore[misc]
    sys.exit(running.run_node("dying_node", caption_node.CaptionNode, None))
