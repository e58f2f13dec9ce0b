"""One camera of the caption node: receives its images and detections, and offers its newest image to the worker.

If detections guide the words, an image is offered only when its detections have arrived or the wait for them is over,
because the worker must not wait.
"""

import math
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from rclpy.lifecycle import LifecycleNode

from smart_caption_ros.caption_messages import stamp_ns
from smart_caption_ros.mailbox import Mailbox
from smart_caption_ros.nodes.caption.detection_buffer import DetectionBuffer, Detections, ExpectedDetections
from smart_caption_ros.nodes.caption.detection_input import DetectionInput
from smart_caption_ros.nodes.caption.image_input import ImageInput
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.parameters import Trigger
from smart_caption_ros.nodes.caption.publisher import Publisher
from smart_caption_ros.nodes.caption.records import ImageMessage, ReceivedImage
from smart_caption_ros.nodes.caption.statistics import Count
from smart_caption_ros.nodes.caption.worker import Worker
from smart_caption_ros.nodes.parameters import Parameters

_LOG_PERIOD_S = 5.0


class Camera:
    """One camera of the caption node.

    Attributes:
        name: empty for the only camera of a node.
        is_enabled: whether the service `enable` lets images be captioned as they arrive.
        is_resting: whether the camera is lazy and unsubscribed, because nobody subscribes to its captions.
        requests: number of service requests that keep a lazy camera awake.
        latest: the newest image received; None before the first one.
    """

    def __init__(self, node: LifecycleNode, name: str, parameters: Parameters, worker: Worker) -> None:
        self.name = name
        self.publisher = Publisher(node, name, parameters)
        self.is_enabled = True
        self.is_resting = False
        self.requests = 0
        self.latest: ReceivedImage | None = None
        namespace = f"{name}/" if name else ""
        self.image_input = ImageInput(node, f"{namespace}image", self.receive)
        self.detection_input = DetectionInput(node, f"{namespace}detections", self._receive_detections)
        self._node = node
        self._parameters = parameters
        self._worker = worker
        self._statistics = self.publisher.statistics
        self._rate = RateLimit()
        self._last_number: int | None = None
        self._detections = DetectionBuffer()
        self._expects_detections = False
        self._lock = threading.Lock()
        self._is_open = self._uses_detections = self._is_guided = False
        self._held: Mailbox[ReceivedImage] = Mailbox()
        self._holding = ThreadPoolExecutor(max_workers=1, thread_name_prefix="detections")

    def open_inputs(self, model: Model) -> None:
        """Subscribe to the topics and types that are published now, or rest if `lazy` is set and nobody subscribes."""
        if self._parameters.values["lazy"] and not (self.requests or self.publisher.is_watched):
            self._rest()
            return
        if self.is_resting:
            self.is_resting = False
            self._statistics.restart_windows()
        self._uses_detections, self._is_guided = model.uses_topic, model.guided_by_topic
        with self._lock:
            self._is_open = True
            if self.image_input.open():
                self._last_number = None
        if model.uses_topic:
            self._detections.open()
            self.detection_input.open(model.detection_classes)
            self._expects_detections |= self.detection_input.has_publisher

    def close_inputs(self) -> None:
        """Unsubscribe, end all waits for detections, and discard the detections and the waiting images."""
        self.is_resting = False
        with self._lock:
            self._is_open = False
        self.image_input.close()
        self.detection_input.close()
        self._detections.close()
        self._holding.submit(lambda: None).result()
        self.discard_waiting()

    def interrupt(self) -> None:
        """End all waits for detections."""
        self._detections.close()

    def close(self) -> None:
        """Unsubscribe and end the thread that waits for detections."""
        self.close_inputs()
        self._holding.shutdown()

    def object_sources(self, model: Model) -> str:
        """Return the sources of the objects in its images, in the order of preference, for the diagnostics."""
        topic, detector = self.detection_input, model.captioner.detector
        sources = [f"{topic.topic} ({topic.type})"] if model.uses_topic else []
        sources += [f"{detector.path} ({detector.layout})"] if detector is not None else []
        return ", else ".join(sources) or "nothing"

    def forget(self) -> None:
        self.latest = None
        self._expects_detections = False

    def receive(self, message: ImageMessage, info: Mapping[str, Any]) -> None:
        """Offer an image to the worker, where it replaces a waiting one, unless it is passed over.

        Called on a thread of the executor.

        Args:
            info: information of the middleware on the message, such as its sequence number; empty in Humble.
        """
        with self._lock:
            if not self._is_open:  # closed while this image was on its way
                return
            self._statistics.count_received(self._missing_before(info))
            self.latest = image = self.received_image(message)
            self._detections.note_image(image.stamp_ns)
            if not (self._is_wanted() and self._rate.passes(image.received_s, self._parameters.values["max_rate_hz"])):
                self._statistics.count(Count.PASSED_OVER)
            elif not self.waits_for_detections(image):
                self._offer(image)
            elif self._held.put(image):
                self._holding.submit(self._offer_held)
            else:
                self._statistics.count(Count.DROPPED)

    def received_image(self, message: ImageMessage) -> ReceivedImage:
        """Return the record of an image that arrives now, with the detections that are expected for it."""
        stamp, now_s, values = stamp_ns(message.header), time.monotonic(), self._parameters.values
        if not self._uses_detections:
            return ReceivedImage(message, stamp, now_s, self.publisher)
        wait_s = values["detection_wait_s"]
        expected = ExpectedDetections(
            self._detections,
            stamp,
            message.header.frame_id,
            values["detection_slop_s"],
            until_s=now_s + wait_s if wait_s and self.detection_input.has_publisher else 0.0,
            are_expected=self._expects_detections,
        )
        return ReceivedImage(message, stamp, now_s, self.publisher, expected)

    def waits_for_detections(self, image: ReceivedImage) -> bool:
        """Return whether an image is captioned only after its detections have arrived, which guide its words."""
        return self._is_guided and image.detections is not None and bool(image.detections.until_s)

    def discard_waiting(self) -> None:
        """Discard the waiting images, and count them as passed over."""
        self._statistics.count(Count.PASSED_OVER, self._held.clear() + self._worker.discard(self.publisher))

    def _rest(self) -> None:
        if not self.is_resting:
            self.close_inputs()
            self.forget()
            self.is_resting = True
            self._statistics.count(Count.RESTS)

    def _missing_before(self, info: Mapping[str, Any]) -> int:
        """Return the number of images that were published before this one and did not arrive.

        It is 0 with ROS 2 Humble and some middlewares, which do not number the messages.
        """
        number: int | None = info.get("publication_sequence_number")
        missing = number - self._last_number - 1 if number and self._last_number else 0
        self._last_number = number
        return missing if missing > 0 and self.image_input.has_one_publisher else 0

    def _offer_held(self) -> None:
        waiting = self._held.take()
        if waiting is None:  # discarded meanwhile
            return
        image, dropped = waiting
        assert image.detections is not None
        image.detections.wait()
        if self._is_wanted():
            self._offer(replace(image, dropped=dropped))
        else:
            self._statistics.count(Count.PASSED_OVER)

    def _is_wanted(self) -> bool:
        return self._is_open and self.is_enabled and self._parameters.values["trigger"] != Trigger.REQUEST.value

    def _offer(self, image: ReceivedImage) -> None:
        if not self._worker.offer(image):
            self._statistics.count(Count.DROPPED)

    def _receive_detections(self, detections: Detections, left_out: int) -> None:
        self._expects_detections = True
        replaces = bool(detections.stamp_ns) and self._detections.add(detections)
        self._statistics.count_detections(left_out, replaces=replaces)
        if not detections.stamp_ns:
            self._node.get_logger().warning(
                f"detections on {self.detection_input.topic} have no stamp and belong to no image: the detector has to "
                "copy the header of its image",
                throttle_duration_sec=_LOG_PERIOD_S,
            )


class RateLimit:
    """Selects images so that the mean rate does not exceed a maximum; not thread-safe.

    An image may arrive half a period early, so that all images of an irregular camera pass whose mean rate is the
    maximum.
    """

    def __init__(self) -> None:
        self._due_s = -math.inf

    def passes(self, now_s: float, max_rate_hz: float) -> bool:
        """Return whether an image that arrives now is captioned.

        Args:
            max_rate_hz: maximum rate, which may change between two calls; 0 sets no limit.
        """
        if not max_rate_hz:
            return True
        period_s = 1 / max_rate_hz
        early_s = self._due_s - now_s
        if period_s / 2 < early_s <= 1.5 * period_s:  # it is larger only after the maximum rate was raised
            return False
        self._due_s = period_s + (self._due_s if 0 < early_s <= period_s / 2 else now_s)
        return True
