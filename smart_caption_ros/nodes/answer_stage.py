"""The second half of an answer, on a thread of its own: evidence, message and publication.

The worker that runs the engine hands every captioned image to it and takes the next one, so that waiting for detections
does not hold up the engine. Each camera has a stage of its own, so that no camera waits for the detections of another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from rclpy.node import Node

from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answering import AnswerSettings, CaptionedImage, ImageAnswer, complete_answer
from smart_caption_ros.nodes.evidence import EvidenceCollector, ObjectOrigin
from smart_caption_ros.nodes.node_statistics import Statistics

MAX_UNFINISHED = 16
"""Captioned images of a camera that may wait for their evidence; the worker passes over its turn meanwhile."""

_LOG_PERIOD_S = 5.0


@dataclass(frozen=True)
class UnfinishedAnswer:
    """What the second half of an answer needs.

    Attributes:
        image: the captioned image.
        settings: the parameters at the time.
        collector: collects the evidence; its `wait_s` counts from `captioned_s`.
        detections_expected: whether the detections topic has a publisher.
        captioned_s: when the image was captioned, time.monotonic().
    """

    image: CaptionedImage
    settings: AnswerSettings
    collector: EvidenceCollector
    detections_expected: bool
    captioned_s: float


class AnswerStage:
    """Completes answers in the order in which they are submitted."""

    def __init__(self, node: Node, statistics: Statistics) -> None:
        """Start the thread.

        Args:
            node: the node, for its log.
            statistics: counts the evidence.
        """
        self._node = node
        self._statistics = statistics
        self._lock = threading.Lock()
        self._unfinished = 0
        self._when_free: Callable[[], None] | None = None
        self._due_s: float | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evidence")

    @property
    def in_work_s(self) -> float:
        """How long the answer in progress has been in work beyond its wait for detections; 0 where there is none."""
        due_s = self._due_s
        return 0.0 if due_s is None else max(0.0, time.monotonic() - due_s)

    def has_place(self, when_free: Callable[[], None]) -> bool:
        """Return whether fewer than :data:`MAX_UNFINISHED` answers are unfinished.

        Args:
            when_free: called once on the thread as soon as that is so, if it is not so now; must not raise.
        """
        with self._lock:
            if self._unfinished < MAX_UNFINISHED:
                return True
            self._when_free = when_free
            return False

    def submit(self, answer: UnfinishedAnswer, publish: Callable[[ImageAnswer], None] | None = None) -> Future[Caption]:
        """Complete an answer.

        Args:
            answer: the answer.
            publish: called on the thread with the completed answer; must not raise.

        Returns:
            A future of the message.

        Raises:
            RuntimeError: the thread was ended.
        """
        future = self._thread.submit(self._complete, answer, publish)
        with self._lock:
            self._unfinished += 1
        future.add_done_callback(self._free_place)
        return future

    def idle(self) -> Future[None]:
        """Return a future that is done when everything submitted so far is."""
        return self._thread.submit(lambda: None)

    def close(self, *, wait: bool) -> None:
        """End the thread; answers whose turn has not come are discarded."""
        self._thread.shutdown(wait=wait, cancel_futures=True)

    def _complete(self, unfinished: UnfinishedAnswer, publish: Callable[[ImageAnswer], None] | None) -> Caption:
        collector = unfinished.collector
        remaining_s = max(0.0, unfinished.captioned_s + collector.wait_s - time.monotonic())
        self._due_s = time.monotonic() + remaining_s
        try:
            collector = replace(collector, wait_s=remaining_s)
            answer = complete_answer(unfinished.image, unfinished.settings, collector)
            self._report(answer, unfinished.detections_expected)
            if publish is not None:
                publish(answer)
            return answer.message
        finally:
            self._due_s = None

    def _free_place(self, future: Future[Caption]) -> None:
        with self._lock:
            self._unfinished -= 1
            when_free, self._when_free = self._when_free, None
        if when_free is not None:
            when_free()

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
