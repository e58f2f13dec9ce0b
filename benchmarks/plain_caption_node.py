"""The simplest node around the captioner, with which `benchmarks/node.py` compares the caption node.

It has one thread, rclpy's default queue of ten images and the conversion of cv_bridge: each image is captioned in the
callback, while later images wait in the queue. Run as ``python -m benchmarks.plain_caption_node --ros-args -p
bundle:=FOLDER``; empty for the bundle that ships.
"""

import contextlib

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import Image
from smart_caption_ros.msg import Caption

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.grounding import guide_words


class PlainCaptionNode(Node):
    """Captions every image of its queue, in order."""

    def __init__(self) -> None:
        super().__init__("plain_caption_node")
        bundle, engine, threads = (
            self.declare_parameter(name, default).value
            for name, default in (("bundle", ""), ("engine", "onnxruntime-cpu"), ("threads", 1))
        )
        self._captioner = guide_words(Captioner.from_bundle(bundle or None, engine, threads))
        self._publisher = self.create_publisher(Caption, "robot/caption", 10)
        self.create_subscription(Image, "image", self._on_image, 10)

    def _on_image(self, image: Image) -> None:
        # As cv_bridge's imgmsg_to_cv2 in Python; the images of the benchmark are bgr8.
        image_bgr = np.ndarray((image.height, image.step // 3, 3), np.uint8, image.data)
        caption = self._captioner.caption(image_bgr[:, : image.width])
        message = Caption(header=image.header, text=caption.text, score=caption.score, status=Caption.STATUS_OK)
        self._publisher.publish(message)


def main() -> None:
    """Run the node until SIGINT."""
    rclpy.init()
    node = PlainCaptionNode()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == "__main__":
    main()
