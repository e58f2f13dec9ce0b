"""Publishers of the caption node: captions and their text; detections and overlays on demand."""

from __future__ import annotations

import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from smart_caption_ros import captioning
from smart_caption_ros.caption_messages import CAPTION_STATUSES
from smart_caption_ros.detection.boxes import Box
from smart_caption_ros.grounding.text_filter import TextFilter
from smart_caption_ros.imaging.image_messages import encode_image
from smart_caption_ros.imaging.pixels import shrink_image
from smart_caption_ros.mailbox import Mailbox
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.annotations import ImageAnnotations
from smart_caption_ros.nodes.caption.detection_messages import to_vision
from smart_caption_ros.nodes.caption.records import Answer
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.viewing import draw_overlay, encode_picture

try:
    import vision_msgs.msg as vision_msgs
except ImportError:  # not part of the ROS 2 core
    vision_msgs = None

_LOG_PERIOD_S = 5.0


class Outputs:
    """Publishes on `<topic>`, `<topic>/text`, `<topic>/image` and `<topic>/image/compressed`.

    Where vision_msgs is installed, `<topic>/detections` has what the node's own detector found;
    :class:`ImageAnnotations` publishes what viewers draw over the camera's images.
    """

    def __init__(self, node: LifecycleNode, topic: str, parameters: Parameters) -> None:
        """Create lifecycle publishers, which the node activates and deactivates with itself.

        Args:
            node: the node.
            topic: topic of the captions; the other topics are derived from its name after remapping.
            parameters: the parameters of the node.
        """
        self._node = node
        self._parameters = parameters
        self._undrawn: Mailbox[Answer] = Mailbox()
        self._drawing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="overlay")
        self.topic: str = node.resolve_topic_name(topic)
        # All are reliable: RViz asks for it by default, and subscribers that ask for best effort match as well.
        # The name as it was given: rclpy remaps every name that it gets.
        self._caption = self._publisher(Caption, topic, depth=10)
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

    def publish(self, answer: Answer) -> None:
        """Publish the message, its text if the status is STATUS_OK, and annotations and detections with a subscriber.

        With `text_on_change`, the text is published only if its meaning differs from that of the last one.
        """
        message, caption = answer.message, answer.caption
        self._caption.publish(message)
        if message.status == Caption.STATUS_OK:
            nouns = answer.evidence.grounding.nouns if answer.evidence and answer.evidence.grounding else ()
            is_new = self._texts.is_new(message.text, [noun.lemma for noun in nouns])
            if is_new or not self._parameters.values["text_on_change"]:
                self._text.publish(String(data=message.text))
        if (
            self._detections is not None
            and caption is not None
            and answer.model is not None
            and answer.model.captioner.detector is not None
            and self._detections.get_subscription_count()
        ):
            self._detections.publish(to_vision(caption.objects, message.header, vision_msgs))
        self._annotations.publish(message)

    def forget_text(self) -> None:
        """Publish the next text, whatever its meaning."""
        self._texts.forget()

    @property
    def overlay_is_watched(self) -> bool:
        """Whether one of the topics of the overlay has a subscriber."""
        return any(p.get_subscription_count() > 0 for p in (self._overlay, self._overlay_jpeg))

    def publish_overlay(self, answer: Answer) -> None:
        """Draw and publish the overlay on a thread, while one of its topics has a subscriber.

        The newest answer replaces one that waits to be drawn. Without a caption and its image there is no overlay.
        """
        if answer.image_bgr is None or answer.evidence is None or not self.overlay_is_watched:
            return
        if self._undrawn.put(answer):
            self._drawing.submit(self._draw_newest)

    def wait_until_idle(self) -> None:
        """Wait until no overlay is in progress."""
        self._drawing.submit(lambda: None).result()

    def close(self) -> None:
        """End the thread that draws."""
        self._undrawn.clear()
        self._drawing.shutdown()

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
        waiting = self._undrawn.take()
        if waiting is None:
            return
        try:
            self._draw(waiting[0])
        except Exception as error:  # OpenCV, or a topic that was destroyed meanwhile
            self._node.get_logger().error(f"cannot publish the overlay: {error}", throttle_duration_sec=_LOG_PERIOD_S)

    def _draw(self, answer: Answer) -> None:
        values, message = self._parameters.values, answer.message
        overlay_bgr = overlay_of(answer, values["overlay_max_side_px"])
        if self._overlay.get_subscription_count():
            self._overlay.publish(Image(header=message.header, **encode_image(overlay_bgr)))
        if self._overlay_jpeg.get_subscription_count():
            jpeg = encode_picture(overlay_bgr, ".jpg", values["overlay_jpeg_quality"])
            self._overlay_jpeg.publish(
                CompressedImage(
                    header=message.header,
                    format="bgr8; jpeg compressed bgr8",
                    data=array.array("B", jpeg),
                )
            )


def overlay_of(answer: Answer, max_side_px: int) -> NDArray[np.uint8]:
    """Draw the overlay of an answer with an image, at the size at which it is sent: drawing takes longer than scaling.

    Args:
        answer: the answer.
        max_side_px: maximum length of the longer side; 0 keeps the size.
    """
    message, evidence, image_bgr = answer.message, answer.evidence, answer.image_bgr
    assert image_bgr is not None
    assert evidence is not None
    title = [message.camera, "" if message.status == Caption.STATUS_OK else CAPTION_STATUSES[message.status].value]
    image_bgr = shrink_image(image_bgr, max_side_px) if max_side_px else image_bgr
    caption = _resized(evidence.caption, image_bgr.shape[1], image_bgr.shape[0])
    overlay_bgr = draw_overlay(image_bgr, caption, ": ".join(filter(None, title)) or None, evidence.grounding)
    # The strip makes an upright image longer.
    return shrink_image(overlay_bgr, max_side_px) if max_side_px else overlay_bgr


def _resized(caption: captioning.Caption, width: int, height: int) -> captioning.Caption:
    """Return the caption of the image at another size."""
    scale_x, scale_y = width / caption.image_size[0], height / caption.image_size[1]

    def resized(box_xyxy: Box) -> Box:
        x1, y1, x2, y2 = box_xyxy
        return x1 * scale_x, y1 * scale_y, x2 * scale_x, y2 * scale_y

    return replace(
        caption,
        words=tuple(replace(word, box_xyxy=resized(word.box_xyxy)) for word in caption.words),
        objects=tuple(replace(item, box_xyxy=resized(item.box_xyxy)) for item in caption.objects),
        image_size=(width, height),
    )
