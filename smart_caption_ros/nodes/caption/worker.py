"""The worker of the caption node: one thread that runs everything that touches the engine.

A camera whose image waits in its mailbox has one place in the queue of the thread, so that cameras take turns, however
fast they are. Service calls queue behind the image in progress and at most one of each camera.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header

from smart_caption_ros.captioning import DetectedObject
from smart_caption_ros.imaging.image_change import change_between, thumbnail
from smart_caption_ros.imaging.image_messages import ImageMessageError, decode_compressed, decode_image
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.camera import Camera, error_description, image_age_s
from smart_caption_ros.nodes.caption.model import Model, release_memory
from smart_caption_ros.nodes.caption.parameters import Trigger
from smart_caption_ros.nodes.caption.records import Answer, ReceivedImage
from smart_caption_ros.nodes.parameters import Parameters

_RECORDING_AGE_S = 3600.0

T = TypeVar("T")


class CancelledLoadingError(Exception):
    """The loading of a model was cancelled."""


class InterruptedWorkError(Exception):
    """The process ends, and does not wait for work in progress."""

    def __init__(self) -> None:
        super().__init__("the node ends")


class Worker:
    """Captions images one at a time; its public methods may be called on any other thread."""

    def __init__(self, node: Node, parameters: Parameters) -> None:
        """Start the thread.

        Args:
            node: the node, for its clock.
            parameters: its parameters.
        """
        self._node = node
        self._parameters = parameters
        self._model: Model | None = None
        self._is_loading = False
        self.loading_cancelled = threading.Event()
        """Whether the present or last loading was cancelled, by :meth:`cancel_loading` or because the process ends."""
        self._work_started_s: float | None = None
        self._worked_s = time.monotonic()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="captioner")
        self._interrupted: Future[None] = Future()
        self._probe, self._probed_s = self._executor.submit(lambda: None), time.monotonic()

    @property
    def model(self) -> Model | None:
        """The loaded model; None while the node is unconfigured."""
        return self._model

    @property
    def in_work_s(self) -> float:
        """How long the engine has worked on the image in progress, seconds; 0 where there is none."""
        started_s = self._work_started_s
        return 0.0 if started_s is None else time.monotonic() - started_s

    def problem(self, timeout_s: float) -> str:
        """Return why images are not captioned any more; empty where all goes on. To be called again and again.

        Args:
            timeout_s: longest time of the work on one image.
        """
        if self._probe.done():
            try:
                self._probe, self._probed_s = self._executor.submit(lambda: None), time.monotonic()
            except RuntimeError:
                return "the thread that captions has ended"
        elif self._is_loading:
            self._probed_s = time.monotonic()
        elif time.monotonic() - max(self._probed_s, self._worked_s) > 2 * timeout_s:
            return "the thread that captions is stuck"
        return ""

    def load(self, load: Callable[[], Model]) -> Model:
        """Load a model on the thread and wait for it.

        Raises:
            CancelledLoadingError: it was cancelled, and `load` finished nevertheless.
            InterruptedWorkError: the process ends; the loading goes on until it does.
            Exception: what `load` raises.
        """

        def loading() -> Model:
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
        return self.result_of(self._executor.submit(loading))

    def cancel_loading(self) -> None:
        """Let :meth:`load` raise an exception as soon as the build of an engine, or all of the loading, can end."""
        self.loading_cancelled.set()

    def unload(self) -> None:
        """Free the model and its memory, after the image in progress; :meth:`close` does it if the process ends."""
        with suppress(InterruptedWorkError):
            self.result_of(self._executor.submit(self._unload))

    def wait_until_idle(self) -> None:
        """Wait until everything submitted so far is done, or until the process ends."""
        with suppress(InterruptedWorkError):
            self.result_of(self._executor.submit(lambda: None))

    def interrupt(self) -> None:
        """Let the calls that wait for the thread raise InterruptedWorkError, now and from now on; cancel loading."""
        self.loading_cancelled.set()
        if not self._interrupted.done():
            self._interrupted.set_result(None)

    def close(self, timeout_s: float) -> bool:
        """Free the model and end the thread, after the image in progress.

        Returns:
            Whether the thread has ended; False where it still loads, or captions after `timeout_s`. Cancelled loading
            may go on for longer, so that it is not waited for.
        """
        is_idle = not self._is_loading and bool(wait([self._executor.submit(self._unload)], timeout_s).done)
        self._executor.shutdown(wait=is_idle, cancel_futures=True)
        return is_idle

    def request_turn(self, camera: Camera) -> None:
        """Caption the newest image of a camera when its turn comes; called once for an image that waits."""
        with suppress(RuntimeError):  # the thread was ended
            self._executor.submit(self._take_turn, camera)

    def describe(self, camera: Camera | None, image: ReceivedImage, *, max_age_s: float) -> Future[Answer]:
        """Caption an image outside of the turns, for a service; the future raises no exception of the engine.

        Args:
            camera: the camera whose detections the image may have; None for none.
            image: the image.
            max_age_s: maximum age of the image, in place of the parameter; 0 accepts any age.
        """
        return self._executor.submit(self._caption, camera, image, max_age_s=max_age_s)

    def result_of(self, future: Future[T]) -> T:
        """Wait for a future and return its result.

        Raises:
            InterruptedWorkError: the process ends.
            Exception: what the future raises.
        """
        futures: list[Future[Any]] = [future, self._interrupted]
        wait(futures, return_when=FIRST_COMPLETED)
        if not future.done():
            raise InterruptedWorkError
        return future.result()

    def _unload(self) -> None:
        self._model = None
        release_memory()

    def _take_turn(self, camera: Camera) -> None:
        image = camera.take()
        if image is None:
            return
        try:
            values = self._parameters.values
            on_change = values["trigger"] == Trigger.CHANGE.value
            camera.answer(self._caption(camera, image, max_age_s=values["max_age_s"], on_change=on_change))
        except Exception as error:  # of ROS, or of a thread that has ended
            camera.count_failure(f"the image cannot be answered: {error_description(error)}")

    def _caption(
        self, camera: Camera | None, image: ReceivedImage, *, max_age_s: float, on_change: bool = False
    ) -> Answer:
        model, values = self._model, self._parameters.values
        self._work_started_s = time.monotonic()
        try:
            return caption_image(
                model,
                image,
                age_s=image_age_s(self._node, image.message.header),
                max_age_s=max_age_s,
                max_pixels=round(values["max_image_megapixels"] * 1e6),
                min_change=values["change_threshold"] if on_change else None,
                reference=camera.reference if camera is not None else None,
                guiding_objects=camera.guiding_objects if camera and model and model.guided_by_topic else None,
            )
        finally:
            self._work_started_s, self._worked_s = None, time.monotonic()


def caption_image(
    model: Model | None,
    image: ReceivedImage,
    *,
    age_s: float | None,
    max_age_s: float = 0.0,
    max_pixels: int,
    min_change: float | None = None,
    reference: NDArray[np.float32] | None = None,
    guiding_objects: Callable[[Header], Sequence[DetectedObject] | None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Decode and caption one image message; never raises.

    Args:
        model: the model; None while the node is unconfigured.
        image: the image; its message may be malformed.
        age_s: age of the image now; None for an image without a stamp, or where the clock has not started.
        max_age_s: maximum age of an image that is captioned, and how far its stamp may lie in the future; 0 accepts
            any age.
        max_pixels: larger images are not decoded.
        min_change: an image that differs less from `reference` is not captioned; None captions every image.
        reference: thumbnail of the last image captioned; None captions this image in any case.
        guiding_objects: returns the objects that guide the words, by the header of the image, or None for those of the
            captioner's own detector; None where objects of the topic do not guide them.
        clock: monotonic clock in seconds.
    """
    header = image.message.header
    answer = Answer(header, image.at_s, clock(), age_s, model=model)
    if model is None:
        answer.reason = "no engine is loaded: configure the node first"
        return answer
    if max_age_s and age_s is not None and age_s > max_age_s:
        answer.status, answer.reason = Caption.STATUS_STALE, _stale_reason(age_s, max_age_s)
        return answer
    if max_age_s and age_s is not None and age_s < -max_age_s:
        answer.reason = (
            f"the stamp of the image is {-age_s:.3f} s in the future, and max_age_s is {max_age_s:g}: the clocks of "
            "camera and node differ"
        )
        return answer
    try:
        if isinstance(image.message, CompressedImage):
            image_bgr = decode_compressed(image.message, max_pixels=max_pixels)
        else:
            image_bgr = decode_image(image.message, max_pixels=max_pixels)
        if min_change is not None:
            answer.thumbnail = thumbnail(image_bgr)
            if reference is not None and change_between(reference, answer.thumbnail) < min_change:
                answer.is_unchanged = True
                return answer
        decoding_s = clock() - answer.started_s
        guide = () if guiding_objects is None else (guiding_objects(header),)
        answer.caption = model.captioner.caption(image_bgr, *guide)
    except ImageMessageError as error:
        answer.reason = str(error)
    except Exception as error:  # an engine may raise anything, and one image must not end the node
        answer.reason = f"the engine failed on this image: {error_description(error)}"
    else:
        answer.captioned_s, answer.decoding_s, answer.image_bgr = clock(), decoding_s, image_bgr
    return answer


def _stale_reason(age_s: float, max_age_s: float) -> str:
    reason = f"the image is {age_s:.3f} s old, and max_age_s is {max_age_s:g}"
    if age_s > _RECORDING_AGE_S:  # no driver is that late: the clocks differ, or this is a recording
        reason += "; for a recording play its clock and set use_sim_time, or set max_age_s to 0"
    return reason
