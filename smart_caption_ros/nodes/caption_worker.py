"""The worker of the caption node: one thread that runs everything that touches the engine.

Images wait in a one-slot mailbox, so that the newest one wins. Service calls queue behind the image in progress and at
most one more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.time import Time

from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answering import AnswerSettings, ImageAnswer, ImageMessage, answer_image
from smart_caption_ros.nodes.detection_buffer import DetectionBuffer
from smart_caption_ros.nodes.detection_input import DetectionInput
from smart_caption_ros.nodes.evidence import EvidenceCollector, ObjectOrigin
from smart_caption_ros.nodes.mailbox import Mailbox
from smart_caption_ros.nodes.model_loading import LoadedModel, release_memory
from smart_caption_ros.nodes.node_statistics import Statistics
from smart_caption_ros.nodes.outputs import Outputs
from smart_caption_ros.nodes.parameters import Parameters

_LOG_PERIOD_S = 5.0


@dataclass(frozen=True)
class ReceivedImage:
    """An image message and the time of its arrival, time.monotonic()."""

    message: ImageMessage
    at_s: float


class CaptionWorker:
    """Captions images one at a time; its public methods may be called on any other thread."""

    def __init__(
        self,
        node: Node,
        parameters: Parameters,
        statistics: Statistics,
        detections: DetectionBuffer,
        detection_input: DetectionInput,
    ) -> None:
        """Start the thread.

        Args:
            node: the node, for its log and its clock.
            parameters: its parameters.
            statistics: counts answers and evidence.
            detections: the messages of the detections topic.
            detection_input: tells whether the detections topic has a publisher.
        """
        self.outputs: Outputs | None = None
        """Publishers of the answers; None while the node is unconfigured."""
        self._node = node
        self._parameters = parameters
        self._statistics = statistics
        self._detections = detections
        self._detection_input = detection_input
        self._model: LoadedModel | None = None
        self._mailbox: Mailbox[ReceivedImage] = Mailbox()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="captioner")

    @property
    def model(self) -> LoadedModel | None:
        """The loaded model; None while the node is unconfigured."""
        return self._model

    def load(self, load: Callable[[], LoadedModel]) -> LoadedModel:
        """Load a model on the thread and wait for it; raises what `load` raises."""

        def loading() -> LoadedModel:
            self._model = load()
            return self._model

        return self._thread.submit(loading).result()

    def unload(self) -> None:
        """Free the model and its memory, after the image in progress."""
        self._thread.submit(self._unload).result()

    def close(self) -> None:
        """Free the model and end the thread, after the image in progress."""
        self._thread.submit(self._unload)
        self._thread.shutdown()

    def put(self, image: ReceivedImage) -> bool:
        """Put an image into the mailbox.

        Returns:
            Whether the mailbox was empty; False if the image replaced an older one.
        """
        was_empty = self._mailbox.put(image)
        if was_empty:
            self._thread.submit(self._answer_newest)
        return was_empty

    def discard_waiting(self) -> None:
        """Discard the image that waits in the mailbox."""
        self._mailbox.clear()

    def wait_until_idle(self) -> None:
        """Wait until everything submitted so far is done."""
        self._thread.submit(lambda: None).result()

    def describe(self, image: ImageMessage, *, any_age: bool = False) -> Caption:
        """Caption one image and wait for the answer.

        Args:
            image: the image.
            any_age: caption it even if it is older than `max_age_s`.
        """
        return self._thread.submit(self._answer, image, any_age=any_age).result().message

    @property
    def detections_take_precedence(self) -> bool:
        """Whether objects on the detections topic take precedence over the node's own detector.

        They do over the bundle's detector, and over a detector named in `detector` only with `prefer_detections`.
        """
        values = self._parameters.values
        return values["prefer_detections"] or not values["detector"]

    def _unload(self) -> None:
        self._model = None
        release_memory()

    def _answer_newest(self) -> None:
        delivery, outputs, values = self._mailbox.take(), self.outputs, self._parameters.values
        if delivery is None or outputs is None:  # deactivated or switched off meanwhile
            return
        image = delivery.item
        try:
            answer = self._answer(image.message)
            answer.message.timing.dropped_frames = delivery.dropped
            outputs.publish(answer)
            age_s = self._age_s(image.message)
            self._statistics.count_answer(
                answer.message.status,
                answer.message.status_message,
                latency_s=time.monotonic() - image.at_s if age_s is None else age_s,
                work_s=answer.work_s,
            )
            outputs.publish_overlay(
                answer, max_side_px=values["overlay_max_side_px"], jpeg_quality=values["overlay_jpeg_quality"]
            )
        except Exception as error:
            self._node.get_logger().error(f"cannot publish the answer: {error}")

    def _answer(self, image: ImageMessage, *, any_age: bool = False) -> ImageAnswer:
        values, model = self._parameters.values, self._model
        settings = AnswerSettings(values["camera"], 0.0 if any_age else values["max_age_s"], values["min_confidence"])
        detections_expected = self._detection_input.has_publisher
        collector = EvidenceCollector(
            has_detector=model is not None and model.captioner.detector is not None,
            topic_first=self.detections_take_precedence,
            detections=self._detections,
            coverage=model.coverage if model is not None else None,
            slop_s=values["detection_slop"],
            wait_s=values["detection_wait"] if detections_expected else 0.0,
        )
        captioner = model.captioner if model is not None else None
        answer = answer_image(captioner, image, settings, collector=collector, age_s=self._age_s(image))
        self._report(answer, detections_expected)
        return answer

    def _report(self, answer: ImageAnswer, detections_expected: bool) -> None:
        """Count the evidence of an answer and log what is wrong with it."""
        logger, evidence, message = self._node.get_logger(), answer.evidence, answer.message
        if evidence is not None:
            self._statistics.count_evidence(evidence, detections_expected=detections_expected)
            if evidence.coverage_error:
                logger.error(evidence.coverage_error, throttle_duration_sec=_LOG_PERIOD_S)
            elif detections_expected and evidence.origin is ObjectOrigin.NONE:
                logger.warning(
                    f"a caption goes out without objects: {evidence.missing_reason}",
                    throttle_duration_sec=_LOG_PERIOD_S,
                )
        if message.status == Caption.STATUS_ERROR:
            logger.error(message.status_message, throttle_duration_sec=_LOG_PERIOD_S)
        elif message.status == Caption.STATUS_STALE:
            logger.warning(message.status_message, throttle_duration_sec=_LOG_PERIOD_S)

    def _age_s(self, image: ImageMessage) -> float | None:
        """Return the age of an image by its stamp; None for an image without a stamp."""
        stamp = image.header.stamp
        if stamp.sec == 0 and stamp.nanosec == 0:
            return None
        now = self._node.get_clock().now()
        return float((now - Time.from_msg(stamp, now.clock_type)).nanoseconds) / 1e9
