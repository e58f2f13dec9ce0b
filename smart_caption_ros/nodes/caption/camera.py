"""One camera of the caption node: its images and detections come in here, its captions go out, everything is counted.

An image arrives on a thread of the executor and waits in the mailbox. The worker takes it when the camera's turn has
come, and gives back its answer. A thread of the camera adds the evidence, for whose detections it may have to wait, and
publishes: neither the engine nor another camera waits for them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray
from rclpy.clock import ROSClock
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from std_msgs.msg import Header

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import CAPTION_STATUSES, COVERAGE_REASONS, stamp_ns, to_message
from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.mailbox import Mailbox
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.detection_buffer import DetectionBuffer, Detections
from smart_caption_ros.nodes.caption.detection_input import DetectionInput
from smart_caption_ros.nodes.caption.evidence import (
    ObjectOrigin,
    TopicDetections,
    collect_evidence,
    coverage_reason,
)
from smart_caption_ros.nodes.caption.image_input import ImageInput
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.outputs import Outputs
from smart_caption_ros.nodes.caption.parameters import Trigger
from smart_caption_ros.nodes.caption.records import Answer, ImageMessage, ReceivedImage
from smart_caption_ros.nodes.caption.statistics import Count, Statistics
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.text import visible

MAX_UNFINISHED = 16
"""Answers of a camera that may wait for their evidence; its turns are passed over meanwhile."""

_LOG_PERIOD_S = 5.0
_MAX_REASON = 1000  # our own sentences are shorter; texts from outside are bounded where they enter a sentence


class Camera:
    """One camera of the caption node.

    Attributes:
        name: name of the camera; empty for the only camera of a node.
        statistics: counts its images, answers and detections.
        is_enabled: whether its images are captioned as they arrive.
        latest: the newest image received; None before the first one.
        reference: thumbnail of the last image captioned, for `trigger` change; None captions the next image.
        detections: the latest messages of its detections topic.
        image_input: subscription to its images.
        detection_input: subscription to its detections.
        outputs: publishers of its answers; None while the node is unconfigured.
    """

    def __init__(
        self,
        node: LifecycleNode,
        name: str,
        parameters: Parameters,
        request_turn: Callable[[Camera], None],
    ) -> None:
        """Create the camera without subscriptions and publishers.

        Args:
            node: the node.
            name: name of the camera, the namespace of its topics; empty for the only camera of a node.
            parameters: the parameters of the node.
            request_turn: lets the worker call :meth:`take` soon.
        """
        self.name = name
        self.statistics = Statistics()
        self.is_enabled = True
        self.latest: ReceivedImage | None = None
        self.reference: NDArray[np.float32] | None = None
        self.detections = DetectionBuffer()
        namespace = f"{name}/" if name else ""
        self.image_input = ImageInput(node, f"{namespace}image", self.receive, self._count_lost)
        self.detection_input = DetectionInput(node, f"{namespace}detections", self._receive_detections)
        self.outputs: Outputs | None = None
        self._node = node
        self._parameters = parameters
        self._request_turn = request_turn
        self._mailbox: Mailbox[ReceivedImage] = Mailbox()
        self._rate = RateLimit()
        self._last_stamp_ns = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._unfinished = 0
        self._lacks_turn = False
        self._due_s: float | None = None
        self._expects_detections = False
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evidence")

    @property
    def caption_name(self) -> str:
        """Name of the camera in its captions: its own, or the parameter `camera`."""
        return self.name or str(self._parameters.values["camera"])

    @property
    def in_work_s(self) -> float:
        """How long the evidence in progress has been in work beyond its wait for detections; 0 where there is none."""
        due_s = self._due_s
        return 0.0 if due_s is None else max(0.0, time.monotonic() - due_s)

    # The state of the node

    def create_outputs(self) -> None:
        """Create the publishers."""
        self.outputs = Outputs(self._node, f"{self.name}/caption" if self.name else "robot/caption", self._parameters)

    def destroy_outputs(self) -> None:
        """Destroy the publishers."""
        if self.outputs is not None:
            self.outputs.destroy()
            self.outputs = None

    def open_inputs(self, model: Model) -> None:
        """Subscribe to the topics and types that are published now."""
        self.image_input.open(self._parameters.values["image_transport"])
        if model.uses_topic:
            self.detections.open()
            self.detection_input.open(self._parameters.values["detection_type"], model.detection_classes)

    def close_inputs(self) -> None:
        """Unsubscribe, and discard the detections and the image that waits; nothing waits for detections any more."""
        self.image_input.close()
        self.detection_input.close()
        self.discard_waiting()
        self.detections.close()

    def object_sources(self, model: Model) -> str:
        """Return where the objects in its images come from."""
        topic, detector = self.detection_input, model.captioner.detector
        sources = [f"{topic.topic} ({topic.type})"] if model.uses_topic else []
        sources += [f"{detector.path} ({detector.layout})"] if detector is not None else []
        return ", else ".join(sources) or "nothing"

    def wait_until_idle(self) -> None:
        """Wait until all answers are published."""
        self._executor.submit(lambda: None).result()
        if self.outputs is not None:
            self.outputs.wait_until_idle()

    def forget(self) -> None:
        """Forget the images and texts so far: the next image is captioned and its text published."""
        self.latest = self.reference = None
        self._dropped = self._last_stamp_ns = 0
        self._expects_detections = False
        if self.outputs is not None:
            self.outputs.forget_text()

    def close(self, timeout_s: float) -> bool:
        """Publish the answers that are in work and end the threads; return whether they have ended in time."""
        is_idle = bool(wait([self._executor.submit(lambda: None)], timeout_s).done)
        self._executor.shutdown(wait=is_idle, cancel_futures=True)
        if self.outputs is not None:
            self.outputs.close()
        return is_idle

    # Images, on a thread of the executor

    def receive(self, message: ImageMessage) -> None:
        """Put an image into the mailbox, in the place of the one that waits there, unless it is passed over."""
        self.statistics.count_received()
        stamp = stamp_ns(message.header)
        if stamp and stamp < self._last_stamp_ns:  # a bag or a simulation begins anew
            self.detections.restart(stamp)
        self._last_stamp_ns = stamp or self._last_stamp_ns
        self.latest = image = ReceivedImage(message, time.monotonic())
        values = self._parameters.values
        if (
            not self.is_enabled
            or values["trigger"] == Trigger.REQUEST.value
            or not self._rate.passes(image.at_s, values["max_rate_hz"])
        ):
            self.statistics.count(Count.PASSED_OVER)
        elif self._mailbox.put(image):
            self._request_turn(self)
        else:
            self.statistics.count(Count.DROPPED)

    def discard_waiting(self) -> None:
        """Discard the image that waits in the mailbox, and count it as passed over."""
        self.statistics.count(Count.PASSED_OVER, self._mailbox.clear())

    def _count_lost(self, images: int) -> None:
        self.statistics.count(Count.LOST, images)

    def _receive_detections(self, detections: Detections, left_out: int) -> None:
        self._expects_detections = True
        replaces = bool(detections.stamp_ns) and self.detections.add(detections)
        self.statistics.count_detections(left_out, replaces=replaces)
        if not detections.stamp_ns:
            self._node.get_logger().warning(
                f"detections without a stamp on {self.detection_input.topic} belong to no image: the detector has to "
                "copy the header of its image",
                throttle_duration_sec=_LOG_PERIOD_S,
            )

    # Turns, on the thread of the worker

    def take(self) -> ReceivedImage | None:
        """Take the image that waits; None where there is none any more, or where it cannot be answered now."""
        with self._lock:
            if self._unfinished >= MAX_UNFINISHED:
                self._lacks_turn = True  # the image waits, and may be replaced by a newer one
                return None
        waiting = self._mailbox.take()
        if waiting is None:  # discarded meanwhile
            return None
        image, dropped = waiting
        self._dropped += dropped
        if self.outputs is None:
            self.statistics.count(Count.PASSED_OVER)
            return None
        return image

    def guiding_objects(self, header: Header) -> tuple[DetectedObject, ...] | None:
        """Return the objects on the detections topic in the image with this header; None where it has none."""
        return self._topic_detections(time.monotonic()).objects(header)

    def answer(self, answer: Answer) -> None:
        """Publish an answer as soon as its evidence is there, on the thread of the camera; nothing if it is unchanged.

        Raises:
            RuntimeError: the thread was ended.
        """
        if answer.is_unchanged:
            self.statistics.count(Count.UNCHANGED)
            return
        if answer.caption is not None:
            self.reference = answer.thumbnail
        # The decoded images of answers that wait for their evidence would take much memory.
        if self.outputs is None or not self.outputs.overlay_is_watched:
            answer.image_bgr = None
        answer.dropped, self._dropped = self._dropped, 0
        future = self._executor.submit(self._complete_and_publish, answer)
        with self._lock:
            self._unfinished += 1
        future.add_done_callback(self._finish)

    def count_failure(self, reason: str) -> None:
        """Count an image without an answer as one with an error, and log the reason."""
        self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
        self.statistics.count_answer(Caption.STATUS_ERROR, reason, latency_s=0.0, work_s=0.0)

    # Evidence and publication, on the thread of the camera

    def complete(self, answer: Answer) -> None:
        """Add evidence and message to an answer, count the evidence, and log what is wrong; never raises."""
        topic = (
            self._topic_detections(answer.captioned_s) if answer.model is not None and answer.model.uses_topic else None
        )
        complete_answer(
            answer, topic, camera=self.caption_name, min_confidence=self._parameters.values["min_confidence"]
        )
        logger, evidence, message = self._node.get_logger(), answer.evidence, answer.message
        if evidence is not None:
            # Also after the publisher has gone: a detector that has stopped is reported.
            expected = self._expects_detections or self.detection_input.has_publisher
            self.statistics.count_evidence(evidence, detections_expected=expected)
            if evidence.coverage_error:
                logger.error(evidence.coverage_error, throttle_duration_sec=_LOG_PERIOD_S)
            elif expected and evidence.missing_reason:
                objects = "no objects" if evidence.origin is ObjectOrigin.NONE else "objects of the node's own detector"
                logger.warning(
                    f"a caption goes out with {objects}: {evidence.missing_reason}",
                    throttle_duration_sec=_LOG_PERIOD_S,
                )
        if message.status == Caption.STATUS_ERROR:
            logger.error(message.status_message, throttle_duration_sec=_LOG_PERIOD_S)
        elif message.status == Caption.STATUS_STALE:
            logger.warning(message.status_message, throttle_duration_sec=_LOG_PERIOD_S)

    def _topic_detections(self, since_s: float) -> TopicDetections:
        """Return the detections topic with the wait for the detections of an image that was captioned at a time."""
        values = self._parameters.values
        wait_s = values["detection_wait_s"] if self.detection_input.has_publisher else 0.0
        return TopicDetections(self.detections, values["detection_slop_s"], since_s, wait_s)

    def _complete_and_publish(self, answer: Answer) -> None:
        self._due_s = max(time.monotonic(), answer.captioned_s + self._parameters.values["detection_wait_s"])
        try:
            self.complete(answer)
            self._publish(answer)
        finally:
            self._due_s = None

    def _publish(self, answer: Answer) -> None:
        status, reason = Caption.STATUS_ERROR, ""
        answer.message.timing.dropped_frames = answer.dropped
        assert self.outputs is not None
        try:
            self.outputs.publish(answer)
            status, reason = answer.message.status, answer.message.status_message
            self.outputs.publish_overlay(answer)
        except Exception as error:
            problem = f"cannot publish the answer: {error_description(error)}"
            reason = reason or problem
            self._node.get_logger().error(problem, throttle_duration_sec=_LOG_PERIOD_S)
        age_s, work_s = image_age_s(self._node, answer.header), answer.message.timing.total_ms / 1000
        # Since its arrival where its age is unknown, or wrong because the camera's clock is ahead.
        latency_s = time.monotonic() - answer.received_s if age_s is None or age_s < 0 else age_s
        self.statistics.count_answer(status, reason, latency_s=latency_s, work_s=work_s)

    def _finish(self, future: Future[None]) -> None:
        with self._lock:
            self._unfinished -= 1
            lacks_turn, self._lacks_turn = self._lacks_turn, False
        if lacks_turn:
            self._request_turn(self)


def complete_answer(
    answer: Answer,
    topic: TopicDetections | None,
    *,
    camera: str,
    min_confidence: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Collect the evidence for the caption of an answer and build its message; never raises.

    Args:
        answer: the answer, with a caption or without.
        topic: the detections topic; None where it is not used.
        camera: name of the camera in the message.
        min_confidence: captions below it get STATUS_LOW_CONFIDENCE.
        clock: the clock of :attr:`Answer.started_s`.
    """
    try:
        if answer.caption is not None and answer.model is not None:
            answer.evidence = evidence = collect_evidence(answer.caption, answer.header, answer.model, topic)
            reason, sentence = coverage_reason(evidence)
            record = CaptionRecord.of(
                evidence.caption,
                evidence.grounding,
                min_confidence=min_confidence,
                camera=camera,
                coverage_reason=COVERAGE_REASONS[reason],
                coverage_message=sentence,
                detection_wait_s=evidence.waited_s,
            )
            answer.message = to_message(msg, record, answer.header)
    except Exception as error:
        answer.status, answer.evidence = Caption.STATUS_ERROR, None
        answer.reason = f"the caption of this image cannot be published: {error_description(error)}"
    if answer.evidence is None:
        record = CaptionRecord.without_caption(
            CAPTION_STATUSES[answer.status], visible(answer.reason, _MAX_REASON), camera=camera
        )
        answer.message = to_message(msg, record, answer.header)
    timing = answer.message.timing
    timing.age_at_start_ms = (answer.age_s or 0.0) * 1000
    timing.preprocess_ms += answer.decoding_s * 1000
    timing.total_ms = ((answer.captioned_s or clock()) - answer.started_s) * 1000


class RateLimit:
    """Selects images so that the mean rate does not exceed a maximum; not thread-safe.

    An image may come half a period early, so that an irregular camera is captioned at its own rate where that is the
    maximum.
    """

    def __init__(self) -> None:
        self._due_s = -math.inf

    def passes(self, now_s: float, max_rate_hz: float) -> bool:
        """Return whether an image that arrives now is captioned.

        Args:
            now_s: time of a monotonic clock in seconds.
            max_rate_hz: maximum rate, which may change between two calls; 0 sets no limit.
        """
        if not max_rate_hz:
            return True
        period_s = 1 / max_rate_hz
        early_s = self._due_s - now_s
        if period_s / 2 < early_s <= 1.5 * period_s:  # longer only after a change of the rate
            return False
        self._due_s = period_s + (self._due_s if 0 < early_s <= period_s / 2 else now_s)
        return True


def lacks_clock(node: Node) -> bool:
    """Return whether a node uses the time on /clock and none has arrived: images have no age then."""
    clock = node.get_clock()
    return isinstance(clock, ROSClock) and clock.ros_time_is_active and not clock.now().nanoseconds


def image_age_s(node: Node, header: Header) -> float | None:
    """Return the age of the image with this header, negative for a stamp in the future; None where it is unknown.

    It is unknown for an image without a stamp, and before the first message on /clock with `use_sim_time`.
    """
    stamp = stamp_ns(header)
    if not stamp or lacks_clock(node):
        return None
    return float(node.get_clock().now().nanoseconds - stamp) / 1e9


def error_description(error: Exception) -> str:
    """Return the type and the message of an exception, shortened and on one line."""
    return f"{type(error).__name__}: {visible(str(error))}"
