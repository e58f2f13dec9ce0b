"""Publishers of the caption node: captions and their text; detections and overlays on demand."""

from __future__ import annotations

import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from smart_caption_ros import captioning
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.grounding.text_filter import TextFilter
from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answering import ImageAnswer
from smart_caption_ros.nodes.detection_messages import to_vision
from smart_caption_ros.nodes.image_annotations import ImageAnnotations
from smart_caption_ros.nodes.mailbox import Mailbox
from smart_caption_ros.nodes.messages import STATUS_NAMES
from smart_caption_ros.viewing import draw_overlay, encode_picture

try:
    import vision_msgs.msg as vision_msgs
except ImportError:  # not part of the ROS 2 core
    vision_msgs = None

_LOG_PERIOD_S = 5.0


@dataclass(frozen=True)
class _OverlayTask:
    """An overlay to be drawn; see :meth:`Outputs.publish_overlay`."""

    answer: ImageAnswer
    max_side_px: int
    jpeg_quality: int


class Outputs:
    """Publishes on `<topic>`, `<topic>/text`, `<topic>/image` and `<topic>/image/compressed`.

    Where vision_msgs is installed, `<topic>/detections` has what the node's own detector found;
    :class:`ImageAnnotations` publishes what viewers draw over the camera's images.
    """

    def __init__(self, node: LifecycleNode, topic: str) -> None:
        """Create lifecycle publishers, which the node activates and deactivates with itself.

        Args:
            node: the node.
            topic: topic of the captions; the other topics are derived from its name after remapping.
        """
        self._node = node
        self._undrawn: Mailbox[_OverlayTask] = Mailbox()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="overlay")
        self.topic: str = node.resolve_topic_name(topic)
        # All are reliable: RViz asks for it by default, and subscribers that ask for best effort match as well.
        self._caption = self._publisher(Caption, self.topic, depth=10)
        self._text = self._publisher(String, f"{self.topic}/text", depth=10)
        self._overlay = self._publisher(Image, f"{self.topic}/image", depth=1)
        self._overlay_jpeg = self._publisher(CompressedImage, f"{self.topic}/image/compressed", depth=1)
        self._texts = TextFilter()
        self._detections: LifecyclePublisher | None = None
        if vision_msgs is not None:
            self._detections = self._publisher(vision_msgs.Detection2DArray, f"{self.topic}/detections", depth=10)
        self._annotations = ImageAnnotations(partial(self._publisher, depth=10), self.topic)

    def destroy(self) -> None:
        """End the thread that draws, and destroy the publishers."""
        self.close()
        publishers = [self._caption, self._text, self._overlay, self._overlay_jpeg, *self._annotations.publishers]
        for publisher in publishers if self._detections is None else [*publishers, self._detections]:
            self._node.destroy_lifecycle_publisher(publisher)

    def publish(self, answer: ImageAnswer, *, text_on_change: bool) -> None:
        """Publish the message, its text if the status is STATUS_OK, and annotations and detections with a subscriber.

        Args:
            answer: the answer.
            text_on_change: publish the text only if its meaning differs from that of the last one.
        """
        self._caption.publish(answer.message)
        if answer.message.status == Caption.STATUS_OK and (self._is_new(answer) or not text_on_change):
            self._text.publish(String(data=answer.message.text))
        if answer.detected is not None and self._detections is not None and self._detections.get_subscription_count():
            self._detections.publish(to_vision(answer.detected, answer.message.header, vision_msgs))
        self._annotations.publish(answer.message)

    def _is_new(self, answer: ImageAnswer) -> bool:
        grounding = answer.evidence.grounding if answer.evidence is not None else None
        lemmas = [noun.lemma for noun in grounding.nouns] if grounding is not None else []
        return self._texts.is_new(answer.message.text, lemmas)

    def forget_text(self) -> None:
        """Publish the next text, whatever its meaning."""
        self._texts.forget()

    @property
    def overlay_is_watched(self) -> bool:
        """Whether one of the topics of the overlay has a subscriber."""
        return any(p.get_subscription_count() > 0 for p in (self._overlay, self._overlay_jpeg))

    def publish_overlay(self, answer: ImageAnswer, *, max_side_px: int, jpeg_quality: int) -> None:
        """Draw and publish the overlay on a thread, while one of its topics has a subscriber.

        The newest answer replaces one that waits to be drawn.

        Args:
            answer: the answer; without a caption and its image there is no overlay.
            max_side_px: maximum length of the overlay's longer side; 0 keeps the size.
            jpeg_quality: 1 to 100.
        """
        if answer.image_bgr is None or answer.evidence is None or not self.overlay_is_watched:
            return
        if self._undrawn.put(_OverlayTask(answer, max_side_px, jpeg_quality)):
            self._thread.submit(self._draw_newest)

    def wait_until_idle(self) -> None:
        """Wait until no overlay is in progress."""
        self._thread.submit(lambda: None).result()

    def close(self) -> None:
        """End the thread that draws."""
        self._undrawn.clear()
        self._thread.shutdown()

    def _publisher(self, kind: type, topic: str, *, depth: int) -> LifecyclePublisher:
        return self._node.create_lifecycle_publisher(
            kind,
            topic,
            # One profile per publisher, because rclpy writes the overrides into it.
            QoSProfile(depth=depth, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE),
            # A group of its own, because an event that arrives during the destruction blocks its group for ever.
            callback_group=MutuallyExclusiveCallbackGroup(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def _draw_newest(self) -> None:
        delivery = self._undrawn.take()
        if delivery is None:
            return
        try:
            self._publish_overlay(delivery.item)
        except Exception as error:  # OpenCV, or a topic that was destroyed meanwhile
            self._node.get_logger().error(f"cannot publish the overlay: {error}", throttle_duration_sec=_LOG_PERIOD_S)

    def _publish_overlay(self, task: _OverlayTask) -> None:
        message, overlay_bgr = task.answer.message, _draw(task.answer, task.max_side_px)
        if self._overlay.get_subscription_count():
            self._overlay.publish(Image(header=message.header, **encode_image(overlay_bgr)))
        if self._overlay_jpeg.get_subscription_count():
            jpeg = encode_picture(overlay_bgr, ".jpg", task.jpeg_quality)
            self._overlay_jpeg.publish(
                CompressedImage(
                    header=message.header,
                    format="bgr8; jpeg compressed bgr8",
                    data=array.array("B", jpeg),
                )
            )


def _draw(answer: ImageAnswer, max_side_px: int) -> NDArray[np.uint8]:
    """Draw the overlay at the size at which it is sent: drawing takes longer than scaling the image."""
    message, evidence = answer.message, answer.evidence
    assert answer.image_bgr is not None
    assert evidence is not None
    title = [message.camera, "" if message.status == Caption.STATUS_OK else STATUS_NAMES[message.status]]
    image_bgr = _scaled_down(answer.image_bgr, max_side_px)
    caption = _resized(evidence.caption, image_bgr.shape[1], image_bgr.shape[0])
    overlay_bgr = draw_overlay(image_bgr, caption, ": ".join(filter(None, title)) or None, evidence.grounding)
    return _scaled_down(overlay_bgr, max_side_px)  # the strip makes an upright image longer


def _resized(caption: captioning.Caption, width: int, height: int) -> captioning.Caption:
    """Return the caption of the image at another size."""
    scale_x, scale_y = width / caption.image_size[0], height / caption.image_size[1]

    def resized(box_xyxy: Box) -> Box:
        x1, y1, x2, y2 = box_xyxy
        return x1 * scale_x, y1 * scale_y, x2 * scale_x, y2 * scale_y

    return replace(
        caption,
        words=tuple(replace(word, box_xyxy=resized(word.box_xyxy)) for word in caption.words),
        objects=tuple(replace(each, box_xyxy=resized(each.box_xyxy)) for each in caption.objects),
        image_size=(width, height),
    )


def _scaled_down(image_bgr: NDArray[np.uint8], max_side_px: int) -> NDArray[np.uint8]:
    height, width = image_bgr.shape[:2]
    scale = max_side_px / max(height, width)
    if not 0 < scale < 1:
        return image_bgr
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(image_bgr, size, interpolation=cv2.INTER_AREA), np.uint8)
