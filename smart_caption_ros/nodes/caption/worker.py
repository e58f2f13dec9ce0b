"""The worker of the caption node: one thread that runs everything that touches the engine.

The images of each camera wait in a one-slot mailbox, so that the newest one wins. A camera whose image waits has one
place in the queue of the thread, so that cameras take turns, however fast they are. Service calls queue behind the
image in progress and at most one of each camera.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rclpy.clock import ROSClock
from rclpy.node import Node
from std_msgs.msg import Header

from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answer_stage import UnfinishedAnswer
from smart_caption_ros.nodes.answering import (
    AnswerSettings,
    CaptionedImage,
    ImageAnswer,
    ImageMessage,
    caption_image,
)
from smart_caption_ros.nodes.camera_stream import CameraStream, ReceivedImage
from smart_caption_ros.nodes.detection_messages import stamp_ns
from smart_caption_ros.nodes.evidence import EvidenceCollector
from smart_caption_ros.nodes.image_selection import Trigger
from smart_caption_ros.nodes.mailbox import Delivery
from smart_caption_ros.nodes.messages import message_without_text
from smart_caption_ros.nodes.model_loading import LoadedModel, release_memory
from smart_caption_ros.nodes.object_source import uses_topic
from smart_caption_ros.nodes.outputs import Outputs
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.text import shortened

_LOG_PERIOD_S = 5.0
_END_TIMEOUT_S = 3.0

T = TypeVar("T")


class CancelledLoadingError(Exception):
    """The loading of a model was cancelled."""


class InterruptedWorkError(Exception):
    """The process ends, and does not wait for work in progress."""

    def __init__(self) -> None:
        super().__init__("the node ends")


class CaptionWorker:
    """Captions images one at a time; its public methods may be called on any other thread."""

    def __init__(
        self, node: Node, parameters: Parameters, cameras: Sequence[CameraStream], requests: CameraStream
    ) -> None:
        """Start the thread.

        Args:
            node: the node, for its log and its clock.
            parameters: its parameters.
            cameras: the cameras whose images are captioned.
            requests: stands for the images of service calls; may be one of the cameras.
        """
        self._node = node
        self._parameters = parameters
        self._cameras = cameras
        self._requests = requests
        self._stages = tuple(dict.fromkeys(camera.stage for camera in (*cameras, requests)))
        self._model: LoadedModel | None = None
        self._is_loading = False
        self.loading_cancelled = threading.Event()
        """Whether the present or last loading was cancelled, by :meth:`cancel_loading` or because the process ends."""
        self._work_started_s: float | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="captioner")
        self._interrupted: Future[None] = Future()
        self._probe, self._probed_s = self._thread.submit(lambda: None), time.monotonic()

    @property
    def model(self) -> LoadedModel | None:
        """The loaded model; None while the node is unconfigured."""
        return self._model

    @property
    def in_work_s(self) -> float:
        """How long the image in progress has been in work in seconds; 0 where there is none."""
        started_s = self._work_started_s
        own_s = 0.0 if started_s is None else time.monotonic() - started_s
        return max(own_s, *(stage.in_work_s for stage in self._stages))

    def problem(self, work_timeout_s: float) -> str:
        """Return why images are not captioned any more; empty where all goes on. To be called again and again.

        Args:
            work_timeout_s: longest time of work on one image.
        """
        if self.in_work_s > work_timeout_s:
            return f"an image has been in work for {self.in_work_s:.1f} s"
        if self._probe.done():
            try:
                self._probe, self._probed_s = self._thread.submit(lambda: None), time.monotonic()
            except RuntimeError:
                return "the thread that captions has ended"
        elif self._is_loading:
            self._probed_s = time.monotonic()
        # The work in progress, an image of each camera, and a request may come before the probe.
        elif time.monotonic() - self._probed_s > (len(self._cameras) + 2) * work_timeout_s:
            return "the thread that captions is stuck"
        return ""

    @property
    def lacks_clock(self) -> bool:
        """Whether the node uses the time on /clock, and none has arrived: images have no age then."""
        clock = self._node.get_clock()
        return isinstance(clock, ROSClock) and clock.ros_time_is_active and not clock.now().nanoseconds

    def load(self, load: Callable[[], LoadedModel]) -> LoadedModel:
        """Load a model on the thread and wait for it.

        Raises:
            CancelledLoadingError: it was cancelled, and `load` finished nevertheless.
            InterruptedWorkError: the process ends; the loading goes on until it does.
            Exception: what `load` raises.
        """

        def loading() -> LoadedModel:
            self._is_loading = True
            try:
                model = load()
                release_memory()  # what loading alone needed
                if self.loading_cancelled.is_set():
                    raise CancelledLoadingError
                self._model = model
            finally:
                self._is_loading = False
            return model

        self.loading_cancelled.clear()

        return self._result_of(self._thread.submit(loading))

    def cancel_loading(self) -> None:
        """Let :meth:`load` raise an exception as soon as the build of an engine, or all of the loading, can end."""
        self.loading_cancelled.set()

    def unload(self) -> None:
        """Free the model and its memory, after the image in progress; :meth:`close` does it if the process ends."""
        with suppress(InterruptedWorkError):
            self._result_of(self._thread.submit(self._unload))

    def interrupt(self) -> None:
        """Let the calls that wait for the thread raise InterruptedWorkError, now and from now on; cancel loading."""
        self.loading_cancelled.set()
        if not self._interrupted.done():
            self._interrupted.set_result(None)

    def close(self) -> bool:
        """Free the model and end the thread, after the image in progress.

        Returns:
            Whether the thread has ended; False where it still loads, or captions after three seconds. Cancelled loading
            may go on for longer, so that it is not waited for.
        """
        if self._is_loading:
            self._close_threads(wait=False)
            return False
        end_s = time.monotonic() + _END_TIMEOUT_S
        for thread_idle in (lambda: self._thread.submit(self._unload), *(stage.idle for stage in self._stages)):
            done, _ = wait([thread_idle()], timeout=max(0.0, end_s - time.monotonic()))
            if not done:
                break
        self._close_threads(wait=bool(done))
        for camera in self._cameras:
            if camera.outputs is not None:
                camera.outputs.close()
        return bool(done)

    def put(self, camera: CameraStream, image: ReceivedImage) -> None:
        """Put an image into the mailbox of its camera, in the place of the one that waits there."""
        if camera.mailbox.put(image):
            self._thread.submit(self._answer_newest, camera)
        else:
            camera.statistics.count_dropped()

    def wait_until_idle(self) -> None:
        """Wait until everything submitted so far is done, or until the process ends."""
        with suppress(InterruptedWorkError):
            self._result_of(self._thread.submit(lambda: None))
            for stage in self._stages:
                self._result_of(stage.idle())
            for camera in self._cameras:
                if camera.outputs is not None:
                    camera.outputs.wait_until_idle()

    def describe_request(self, image: ImageMessage) -> Caption:
        """Caption an image that a caller sent, whatever its age, and wait for the answer; never raises."""
        return self._describe(self._requests, image, any_age=True)

    def describe_latest(self, camera: CameraStream, image: ReceivedImage) -> Caption:
        """Caption an image of a camera and wait for the answer; never raises."""
        return self._describe(camera, image.message, any_age=False)

    def _describe(self, camera: CameraStream, image: ImageMessage, *, any_age: bool) -> Caption:
        try:
            settings = self._settings(camera, any_age=any_age)
            captioning = self._thread.submit(self._describe_image, camera, image, settings)
            return self._result_of(self._result_of(captioning))
        except Exception as error:  # a caller without an answer would wait for ever
            reason = f"the image cannot be answered: {type(error).__name__}: {shortened(str(error))}"
            if not isinstance(error, InterruptedWorkError):
                self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
            return message_without_text(Caption.STATUS_ERROR, reason, image.header, camera=self.camera_name(camera))

    def camera_name(self, camera: CameraStream) -> str:
        """Return the name of a camera in its captions: its own, or the parameter `camera`."""
        return camera.name or str(self._parameters.values["camera"])

    def _result_of(self, future: Future[T]) -> T:
        futures: list[Future[Any]] = [future, self._interrupted]
        wait(futures, return_when=FIRST_COMPLETED)
        if not future.done():
            raise InterruptedWorkError
        return future.result()

    def _unload(self) -> None:
        self._model = None
        release_memory()

    def _close_threads(self, *, wait: bool) -> None:
        self._thread.shutdown(wait=wait, cancel_futures=True)
        for stage in self._stages:
            stage.close(wait=wait)

    def _answer_newest(self, camera: CameraStream) -> None:
        if not camera.stage.has_place(when_free=lambda: self._queue(camera)):
            return  # its image waits, and may be replaced by a newer one; other cameras have their turns
        delivery, outputs = camera.mailbox.take(), camera.outputs
        if delivery is None:  # discarded meanwhile
            return
        if outputs is None:
            camera.statistics.count_passed_over(1)
            return

        try:
            self._answer(camera, outputs, delivery)
        except Exception as error:  # of ROS, or of a thread that has ended
            reason = f"the image cannot be answered: {type(error).__name__}: {shortened(str(error))}"
            self._node.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
            camera.statistics.count_answer(Caption.STATUS_ERROR, reason, latency_s=0.0, work_s=0.0)

    def _answer(self, camera: CameraStream, outputs: Outputs, delivery: Delivery[ReceivedImage]) -> None:
        """Answer an image of a camera, unless it differs too little from the last one captioned."""
        values, image = self._parameters.values, delivery.item
        dropped = camera.unreported_drops + delivery.dropped
        camera.unreported_drops = 0
        on_change = values["trigger"] == Trigger.CHANGE.value
        settings = replace(
            self._settings(camera, any_age=False), min_change=values["change_threshold"] if on_change else None
        )
        captioned = self._caption(camera, image.message, settings, camera.reference)
        if captioned.unchanged:
            camera.unreported_drops = dropped
            camera.statistics.count_unchanged()
            return
        if captioned.caption is not None:
            camera.reference = captioned.thumbnail
        # The decoded images of answers that wait for their evidence would take much memory.
        if not outputs.overlay_is_watched:
            captioned = replace(captioned, image_bgr=None)

        received_s = image.at_s  # not the image: answers that wait for their evidence would keep its memory

        def publish(answer: ImageAnswer) -> None:
            answer.message.timing.dropped_frames = dropped
            self._publish(camera, outputs, answer, received_s)

        self._complete(camera, captioned, settings, publish)

    def _describe_image(self, camera: CameraStream, image: ImageMessage, settings: AnswerSettings) -> Future[Caption]:
        """Caption the image of a service call."""
        captioned = self._caption(camera, image, settings)
        return self._complete(camera, replace(captioned, image_bgr=None), settings)

    def _queue(self, camera: CameraStream) -> None:
        with suppress(RuntimeError):  # the thread was ended
            self._thread.submit(self._answer_newest, camera)

    def _publish(self, camera: CameraStream, outputs: Outputs, answer: ImageAnswer, received_s: float) -> None:
        values, status, reason = self._parameters.values, Caption.STATUS_ERROR, ""
        try:
            outputs.publish(answer, text_on_change=values["text_on_change"])
            status, reason = answer.message.status, answer.message.status_message
            outputs.publish_overlay(
                answer, max_side_px=values["overlay_max_side_px"], jpeg_quality=values["overlay_jpeg_quality"]
            )
        except Exception as error:
            problem = f"cannot publish the answer: {type(error).__name__}: {shortened(str(error))}"
            reason = reason or problem
            self._node.get_logger().error(problem, throttle_duration_sec=_LOG_PERIOD_S)
        age_s = self._age_s(answer.message.header)
        # Since its arrival where its age is unknown, or wrong because the camera's clock is ahead.
        latency_s = time.monotonic() - received_s if age_s is None or age_s < 0 else age_s
        camera.statistics.count_answer(status, reason, latency_s=latency_s, work_s=answer.work_s)

    def _settings(self, camera: CameraStream, *, any_age: bool) -> AnswerSettings:
        values = self._parameters.values
        return AnswerSettings(
            camera=self.camera_name(camera),
            max_age_s=0.0 if any_age else values["max_age_s"],
            min_confidence=values["min_confidence"],
            max_pixels=round(values["max_image_megapixels"] * 1e6),
        )

    def _caption(
        self,
        camera: CameraStream,
        image: ImageMessage,
        settings: AnswerSettings,
        reference: NDArray[np.float32] | None = None,
    ) -> CaptionedImage:
        """Run the engine on an image; see :func:`caption_image`."""
        model = self._model
        self._work_started_s = time.monotonic()
        try:
            return caption_image(
                model.captioner if model is not None else None,
                image,
                settings,
                age_s=self._age_s(image.header),
                reference=reference,
                guiding_objects=self._collector(camera).objects_of_topic
                if model is not None and model.guided_by_topic
                else None,
            )
        finally:
            self._work_started_s = None

    def _complete(
        self,
        camera: CameraStream,
        captioned: CaptionedImage,
        settings: AnswerSettings,
        publish: Callable[[ImageAnswer], None] | None = None,
    ) -> Future[Caption]:
        """Submit a captioned image to the stage that completes its answer."""
        collector, expected = self._collector(camera), camera.detection_input.has_publisher
        unfinished = UnfinishedAnswer(captioned, settings, collector, expected, time.monotonic())
        return camera.stage.submit(unfinished, publish)

    def _collector(self, camera: CameraStream) -> EvidenceCollector:
        values, model = self._parameters.values, self._model
        return EvidenceCollector(
            has_detector=model is not None and model.captioner.detector is not None,
            uses_topic=uses_topic(values),
            detections=camera.detections,
            coverage=model.coverage if model is not None else None,
            slop_s=values["detection_slop_s"],
            wait_s=values["detection_wait_s"] if camera.detection_input.has_publisher else 0.0,
            coverage_lock=model.coverage_lock if model is not None else threading.Lock(),
        )

    def _age_s(self, header: Header) -> float | None:
        """Return the age of the image with this header, negative for a stamp in the future; None where it is unknown.

        It is unknown for an image without a stamp, and before the first message on /clock with `use_sim_time`.
        """
        stamp = stamp_ns(header)
        if not stamp or self.lacks_clock:
            return None
        return float(self._node.get_clock().now().nanoseconds - stamp) / 1e9
