"""The worker of the caption node: one thread that runs all work on the engine, and waits for nothing else.

Each camera has at most one image in the queue of the thread, so that cameras take turns whatever their rates. A service
call waits for the image in progress and at most one image of each camera.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rclpy.clock import ROSClock
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage

from smart_caption_ros.imaging.image_change import change_between, thumbnail
from smart_caption_ros.imaging.image_messages import ImageMessageError, decode_compressed, decode_image
from smart_caption_ros.nodes.caption.model import Model, release_memory
from smart_caption_ros.nodes.caption.parameters import Trigger
from smart_caption_ros.nodes.caption.publisher import Publisher, error_description
from smart_caption_ros.nodes.caption.records import ReceivedImage
from smart_caption_ros.nodes.caption.statistics import Count
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.record import CaptionRecord, CaptionStatus, LazyImage
from smart_caption_ros.text import MAX_SENTENCE, visible

WORK_TIMEOUT_S = 10.0
"""Time of work on one image after which the node reports ERROR and no longer serves systemd's watchdog, seconds."""
MIN_CHANGE = 10.0
"""Minimum change of an image that is captioned if `trigger` is change: mean difference of the grey levels, 0 to 255, in
that one of 8 x 6 parts of the image that differs most."""

_RECORDING_AGE_S = 3600.0

T = TypeVar("T")


class InterruptedWorkError(Exception):
    """The process is ending and does not wait for work in progress."""

    def __init__(self) -> None:
        super().__init__("the node ends")


class Worker:
    """Captions images one at a time; its public methods may be called on all threads but its own."""

    def __init__(self, node: Node, parameters: Parameters) -> None:
        self._node = node
        self._parameters = parameters
        self.model: Model | None = None
        self._is_loading = False
        self.loading_cancelled = threading.Event()
        """Set if the present or last loading was cancelled, by :meth:`cancel_loading` or because the process ends."""
        self._work_started_s: float | None = None
        self._worked_s = time.monotonic()
        self._lock = threading.Lock()
        self._newest: dict[Publisher, ReceivedImage] = {}
        # Used only on the thread: the scene of each camera, and its dropped images that no caption has reported yet.
        self._scenes: dict[Publisher, Scene] = {}
        self._unreported: dict[Publisher, int] = {}
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="captioner")
        self._interrupted: Future[None] = Future()
        self._probe, self._probed_s = self._executor.submit(lambda: None), time.monotonic()

    @property
    def in_work_s(self) -> float:
        """Time for which the image in progress has been in work, seconds; 0 if there is none."""
        started_s = self._work_started_s
        return 0.0 if started_s is None else time.monotonic() - started_s

    @property
    def problem(self) -> str:
        """Why images are no longer captioned; empty if they are. Has to be read periodically."""
        if self._probe.done():
            try:
                self._probe, self._probed_s = self._executor.submit(lambda: None), time.monotonic()
            except RuntimeError:
                return "the thread that captions has ended"
        elif self._is_loading:
            self._probed_s = time.monotonic()
        elif time.monotonic() - max(self._probed_s, self._worked_s) > 2 * WORK_TIMEOUT_S:
            return "the thread that captions is stuck"
        return ""

    def load(self, load: Callable[[], Model]) -> Model:
        """Load a model on the thread and wait for it.

        Raises the exceptions of `load`, CancelledError if loading was cancelled and `load` finished nevertheless, and
        InterruptedWorkError as soon as the process ends.
        """

        def loading() -> Model:
            self._is_loading = True
            try:
                model = load()
                release_memory()  # which was needed only for loading
                if self.loading_cancelled.is_set():
                    raise CancelledError
                self.model = model
            finally:
                self._is_loading = False
            return model

        self.loading_cancelled.clear()
        return self._result_of(self._executor.submit(loading))

    def cancel_loading(self) -> None:
        """Cancel loading: :meth:`load` raises as soon as the build of an engine can be stopped, else at its end."""
        self.loading_cancelled.set()

    def unload(self) -> None:
        """Free the model and its memory after the image in progress; if the process ends, :meth:`close` does so."""
        with suppress(InterruptedWorkError):
            self._result_of(self._executor.submit(self._unload))

    def wait_until_idle(self) -> None:
        """Wait until everything submitted so far is done, or until the process ends."""
        with suppress(InterruptedWorkError):
            self._result_of(self._executor.submit(lambda: None))

    def forget(self) -> None:
        """Forget the scenes, so that the next image of each camera is captioned; called while the thread is idle."""
        self._scenes.clear()
        self._unreported.clear()

    def interrupt(self) -> None:
        """Make all present and later waits for the thread raise InterruptedWorkError, and cancel loading."""
        self.loading_cancelled.set()
        if not self._interrupted.done():
            self._interrupted.set_result(None)

    def close(self, timeout_s: float) -> bool:
        """Free the model and end the thread after the image in progress; return whether the thread has ended.

        It has not ended if it is still captioning after `timeout_s`, or is loading, which may go on for long after it
        was cancelled.
        """
        is_idle = not self._is_loading and bool(wait([self._executor.submit(self._unload)], timeout_s).done)
        self._executor.shutdown(wait=is_idle, cancel_futures=True)
        return is_idle

    def offer(self, image: ReceivedImage) -> bool:
        """Queue an image of a camera, which is captioned in its turn unless a newer one replaces it before.

        Return False if the image replaced a waiting one, which is dropped.
        """
        publisher = image.publisher
        assert publisher is not None
        with self._lock:
            waiting = self._newest.get(publisher)
            if waiting is not None:
                image = replace(image, dropped=image.dropped + waiting.dropped + 1)
            self._newest[publisher] = image
        if waiting is None:
            with suppress(RuntimeError):  # the thread has ended
                self._executor.submit(self._take_turn, publisher)
        return waiting is None

    def discard(self, publisher: Publisher) -> int:
        """Discard the waiting image of a camera; return the number discarded, 0 or 1."""
        with self._lock:
            return int(self._newest.pop(publisher, None) is not None)

    def describe(self, image: ReceivedImage, *, max_age_s: float) -> CaptionRecord:
        """Caption an image for a service, and wait for the result.

        Args:
            max_age_s: maximum age of the image, instead of the parameter; 0 accepts any age.

        Raises:
            InterruptedWorkError: the process ends.
            RuntimeError: the thread has ended.
        """
        record = self._result_of(self._executor.submit(self._caption, image, max_age_s))
        assert record is not None  # None is returned only with a scene
        return record

    def _result_of(self, future: Future[T]) -> T:
        """Wait for a future and return its result; raises InterruptedWorkError as soon as the process ends."""
        futures: list[Future[Any]] = [future, self._interrupted]
        wait(futures, return_when=FIRST_COMPLETED)
        if not future.done():
            raise InterruptedWorkError
        return future.result()

    def _unload(self) -> None:
        self.model = None
        release_memory()

    def _take_turn(self, publisher: Publisher) -> None:
        with self._lock:
            image = self._newest.pop(publisher, None)
        if image is None:  # discarded meanwhile
            return
        image = replace(image, dropped=image.dropped + self._unreported.pop(publisher, 0))
        model, values = self.model, self._parameters.values
        scene = self._scenes.pop(publisher, None) or Scene()
        if values["trigger"] == Trigger.CHANGE.value:
            self._scenes[publisher] = scene
        try:
            record = self._caption(image, values["max_age_s"], self._scenes.get(publisher))
            if record is not None:
                publisher.publish(image, record, model)
            else:
                self._unreported[publisher] = image.dropped
                publisher.statistics.count(Count.UNCHANGED)
        except Exception as error:  # from ROS, or because the publisher's thread has ended
            publisher.count_failure(f"the image cannot be answered: {error_description(error)}")

    def _age_s(self, stamp_ns: int) -> float | None:
        """Return the age of an image, negative for a stamp in the future; None if it is unknown.

        It is unknown for an image without a stamp, and with `use_sim_time` before the first message on /clock.
        """
        if not stamp_ns or lacks_clock(self._node):
            return None
        return float(self._node.get_clock().now().nanoseconds - stamp_ns) / 1e9

    def _caption(self, image: ReceivedImage, max_age_s: float, scene: "Scene | None" = None) -> CaptionRecord | None:
        age_s = self._age_s(image.stamp_ns)
        self._work_started_s = time.monotonic()
        try:
            return caption_image(self.model, image, age_s=age_s, max_age_s=max_age_s, scene=scene)
        finally:
            self._work_started_s, self._worked_s = None, time.monotonic()


class Scene:
    """The last captioned image of a camera, with which new images are compared."""

    def __init__(self) -> None:
        self._captioned: NDArray[np.float32] | None = None
        self._seen: NDArray[np.float32] | None = None

    def has_changed(self, image_bgr: NDArray[np.uint8]) -> bool:
        """Return whether an image differs from the last captioned one; True for the first image."""
        self._seen = thumbnail(image_bgr)
        return self._captioned is None or change_between(self._captioned, self._seen) >= MIN_CHANGE

    def keep(self) -> None:
        """Make the image of the last call of :meth:`has_changed` the one that later images are compared with."""
        self._captioned = self._seen


def caption_image(
    model: Model | None,
    image: ReceivedImage,
    *,
    age_s: float | None,
    max_age_s: float = 0.0,
    scene: Scene | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CaptionRecord | None:
    """Decode and caption one image message; never raises.

    Args:
        age_s: age of the image now; None if it has no stamp, or if the clock has not started.
        max_age_s: maximum age of an image that is captioned, and how far its stamp may lie in the future; 0 accepts
            any age.
        scene: an image that does not differ from it is not captioned; None captions every image.

    Returns:
        The record, without the detections of the topic and without nouns; None if the scene has not changed.
    """
    started_s = clock()
    where: dict[str, Any] = {
        "camera": "" if image.publisher is None else image.publisher.name,
        "stamp_ns": image.stamp_ns or None,
        "frame_id": image.message.header.frame_id,
        "age_at_start_s": age_s,
        "dropped": image.dropped,
    }

    def without_caption(status: CaptionStatus, reason: str) -> CaptionRecord:
        reason = visible(reason, MAX_SENTENCE)
        return CaptionRecord.without_caption(status, reason, total_s=clock() - started_s, **where)

    if model is None:
        return without_caption(CaptionStatus.ERROR, "no engine is loaded: configure the node first")
    if max_age_s and age_s is not None and age_s > max_age_s:
        return without_caption(CaptionStatus.STALE, _stale_reason(age_s, max_age_s))
    if max_age_s and age_s is not None and age_s < -max_age_s:
        return without_caption(
            CaptionStatus.ERROR,
            f"the stamp of the image is {-age_s:.3f} s in the future, and max_age_s is {max_age_s:g}: the clocks of "
            "camera and node differ",
        )
    try:
        is_compressed = isinstance(image.message, CompressedImage)
        image_bgr = decode_compressed(image.message) if is_compressed else decode_image(image.message)
        if scene is not None and not scene.has_changed(image_bgr):
            return None
        decoding_s = clock() - started_s
        guide = (image.detections.find().objects,) if image.detections and model.guided_by_topic else ()
        caption = model.captioner.caption(image_bgr, *guide)
        timing = caption.timing
        timing = replace(timing, preprocess_s=timing.preprocess_s + decoding_s, total_s=clock() - started_s)
        if scene is not None:
            scene.keep()
        return CaptionRecord(replace(caption, timing=timing), image=LazyImage.of_pixels(image_bgr), **where)
    except ImageMessageError as error:
        return without_caption(CaptionStatus.ERROR, str(error))
    except Exception as error:  # an engine may raise any exception, which must not end the node
        return without_caption(CaptionStatus.ERROR, f"the engine failed on this image: {error_description(error)}")


def lacks_clock(node: Node) -> bool:
    """Return whether a node uses the time on /clock and none has arrived, so that the age of images is unknown."""
    clock = node.get_clock()
    return isinstance(clock, ROSClock) and clock.ros_time_is_active and not clock.now().nanoseconds


def _stale_reason(age_s: float, max_age_s: float) -> str:
    reason = f"the image is {age_s:.3f} s old, and max_age_s is {max_age_s:g}"
    if age_s > _RECORDING_AGE_S:  # no driver is that slow: the clocks differ, or this is a recording
        reason += "; for a recording play its clock and set use_sim_time, or set max_age_s to 0"
    return reason
