"""The camera node: publishes images from files, videos, bags or a webcam as a camera driver does."""

import threading
import time
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Header

from smart_caption_ros.msg import BoundingBox, DetectedObject, DetectedObjectArray
from smart_caption_ros.nodes.camera.outputs import CameraOutputs
from smart_caption_ros.nodes.camera.parameters import CAMERA_NODE_PARAMETERS
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.sources import Frame, FrameSource, SourceError, open_source
from smart_caption_ros.text import MAX_SENTENCE, visible

_POLL_S = 0.02
_RATE_POLL_S = 0.5
_END_TIMEOUT_S = 5.0
WAIT_TIMEOUT_S = 120.0  # for subscribers; a caption node may have to build an engine first


class CameraNode(Node):
    """Publishes the frames of a source; docs/nodes.md describes its interface."""

    def __init__(self, **node_options: Any) -> None:
        """Open the source and start to publish; see :class:`smart_caption_ros.nodes.running.RunnableNode`."""
        super().__init__("camera_node", **node_options)
        self.exit_status: int | None = None
        self._settings = Parameters(self, CAMERA_NODE_PARAMETERS)
        values = self._settings.values
        source = values["source"]
        if source.startswith("~"):
            source = str(Path(source).expanduser())
        try:
            self._source = open_source(source, topic=values["bag_topic"] or None)
        except SourceError as error:
            raise ValueError(visible(str(error), MAX_SENTENCE)) from error
        self._description = visible(self._source.description, MAX_SENTENCE)
        self._outputs = CameraOutputs(self, "image")
        self._detections: Publisher | None = None
        if values["publish_objects"]:
            if not self._source.knows_objects:
                raise ValueError(
                    f"publish_objects is on, but {self._description} has no labelled objects; sequences in the ACVR "
                    "layout have them"
                )
            self._detections = self._outputs.publisher(DetectedObjectArray, "detections")
        self._stop = threading.Event()
        # A separate thread, because reading a frame may block for long while parameters have to be served.
        self._player = threading.Thread(target=self._run, name="player", daemon=True)
        self._player.start()

    def interrupt(self) -> None:
        self._stop.set()

    def close(self) -> bool:
        """Wait for the thread that publishes; return whether it has ended."""
        self._player.join(timeout=_END_TIMEOUT_S)  # a webcam driver may hang
        return not self._player.is_alive()

    def _run(self) -> None:
        try:
            self._wait_for_subscribers()
            published = self._play(self._source)
            if not self._stop.is_set():
                self._wait_for_delivery()
                self.get_logger().info(f"published {published} images of {self._description}")
            self.exit_status = 0
        except Exception as error:
            self.get_logger().error(visible(str(error), MAX_SENTENCE))
            self.exit_status = 1

    @property
    def _period_s(self) -> float:
        return 1.0 / float(self._settings.values["rate_hz"])

    def _play(self, source: FrameSource) -> int:
        """Publish until the source or the node ends; return the number of images."""
        values = self._settings.values
        published = 0
        last_s = time.monotonic() - self._period_s
        self.get_logger().info(f"publishing {self._description} on {self._outputs.topic} at {values['rate_hz']:g} Hz")
        while True:
            for frame in source.every(values["every"]):
                if source.is_live and time.monotonic() < last_s + self._period_s and not self._stop.is_set():
                    continue  # a live frame that waited until it is due would be out of date
                messages = self._outputs.messages(frame.image_bgr)
                # In steps, because the rate may be raised meanwhile.
                while (rest_s := last_s + self._period_s - time.monotonic()) > 0 and not self._stop.is_set():
                    self._stop.wait(min(rest_s, _RATE_POLL_S))
                if self._stop.is_set():
                    return published
                stamp = self.get_clock().now().to_msg()
                header = Header(stamp=stamp, frame_id=self._settings.values["frame_id"])
                if self._detections is not None:  # before the image, so that they arrive before it is captioned
                    self._detections.publish(detections_message(frame, header))
                self._outputs.publish(messages, header)
                published += 1
                # A late frame delays the following ones, which are not published in a burst.
                last_s = max(last_s + self._period_s, time.monotonic() - self._period_s)
            if not self._settings.values["loop"]:
                return published

    def _wait_for_subscribers(self) -> None:
        end_s = time.monotonic() + WAIT_TIMEOUT_S
        while missing := self._missing_subscribers():
            if time.monotonic() > end_s:
                raise TimeoutError(f"{missing} after {WAIT_TIMEOUT_S:g} s")
            if self._stop.wait(_POLL_S):
                return

    def _missing_subscribers(self) -> str:
        wanted, present = self._settings.values["wait_for_subscribers"], self._outputs.subscribers
        if present < wanted:
            return f"{present} of {wanted} subscribers on {self._outputs.topic}"
        if wanted and self._detections is not None and not self._detections.get_subscription_count():
            return f"no subscriber on {self._detections.topic_name}"
        return ""

    def _wait_for_delivery(self) -> None:
        """Wait until the last image has arrived, because the publisher is destroyed afterwards."""
        if not self._outputs.wait_for_all_acked(WAIT_TIMEOUT_S):
            self.get_logger().warning("some subscribers did not confirm the last images in time")
        # Best effort has no acknowledgements, and an acknowledged image may still be in the queue of the subscriber.
        self._stop.wait(0.5)


def detections_message(frame: Frame, header: Header) -> DetectedObjectArray:
    """Build the detections of a frame from its labelled objects, each with its class name and a score of 1."""
    objects = []
    for item in frame.objects or ():
        left, top, right, bottom = item.box_xyxy
        box = BoundingBox(x1=left, y1=top, x2=right, y2=bottom)
        objects.append(DetectedObject(class_name=item.class_name, class_id=-1, score=1.0, box=box))
    return DetectedObjectArray(header=header, objects=objects)
