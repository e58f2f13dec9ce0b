"""The caption node: images in, captions out.

A managed lifecycle node that starts itself unless told otherwise. Images wait in a one-slot mailbox, one
worker thread takes the newest and answers it, and nothing else ever touches the engine. Every image that is
taken up gets an answer, with a status where there is no text.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import ChangeState
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.time import Time
from rclpy.timer import Timer
from std_srvs.srv import SetBool

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.detection.class_names import COCO_CLASSES, normalise
from smart_caption_ros.detection.detector import read_class_names
from smart_caption_ros.grounding import NounCoverage
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answering import Answer, ImageMessage, Policy, answer
from smart_caption_ros.nodes.detection_buffer import DetectionBuffer, Detections
from smart_caption_ros.nodes.detection_input import DetectionInput, check_type
from smart_caption_ros.nodes.diagnostics import NodeState, Statistics, diagnostic_status
from smart_caption_ros.nodes.evidence import Gatherer, LoadCoverage, Origin, load_coverage
from smart_caption_ros.nodes.image_input import ImageInput
from smart_caption_ros.nodes.mailbox import Mailbox
from smart_caption_ros.nodes.outputs import Outputs
from smart_caption_ros.nodes.parameters import CAPTION_NODE_PARAMETERS, Parameters
from smart_caption_ros.nodes.running import run_node
from smart_caption_ros.srv import DescribeImage, DescribeLatest

IMAGE_TOPIC = "image"
DETECTIONS_TOPIC = "detections"
CAPTION_TOPIC = "robot/caption"

_LOG_PERIOD_S = 5.0

ChangeStateCallback = Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response]
Transition = Callable[["CaptionNode", LifecycleState], TransitionCallbackReturn]


class LoadCaptioner(Protocol):
    """`Captioner.from_bundle`, or what a test puts in its place."""

    def __call__(
        self,
        path: Path | None,
        engine: str,
        threads: int | None,
        detector: Path | None,
        minimum_score: float | None,
    ) -> Captioner:
        """Loads the engine; the message of whatever it raises becomes the node's failure."""


@dataclass(frozen=True)
class _Received:
    image: ImageMessage
    at_s: float  # time.monotonic()


def _transition(callback: Transition) -> Transition:
    """Logs what goes wrong in a lifecycle callback: rclpy makes a silent ERROR of every exception."""

    @functools.wraps(callback)
    def logged(node: CaptionNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return callback(node, state)
        except Exception as error:
            node.fail(f"{callback.__name__}: {error}")
            return TransitionCallbackReturn.ERROR

    return logged


def _refusing(change_state: ChangeStateCallback) -> ChangeStateCallback:
    """Answers a request for a transition that this state does not have: rclpy would end the process over it."""

    def answered(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return change_state(request, response)
        except RuntimeError:  # rclpy's errors
            response.success = False
            return response

    return answered


class CaptionNode(LifecycleNode):
    """Subscribes to a camera and says what it sees; docs/running_on_a_robot.md describes its interface."""

    def __init__(
        self,
        *,
        load_captioner: LoadCaptioner = Captioner.from_bundle,
        load_coverage: LoadCoverage = load_coverage,
        **node_options: Any,
    ) -> None:
        """Makes the node, unconfigured.

        Args:
            load_captioner: makes the captioner at configure.
            load_coverage: makes what matches nouns with objects, then too.
            node_options: passed on to rclpy (namespace, parameter_overrides, context ...).

        Raises:
            ValueError: a parameter has a wrong value; one sentence.
        """
        super().__init__("caption_node", **node_options)
        self.exit_status: int | None = None
        self._load_captioner = load_captioner
        self._load_coverage = load_coverage
        self._captioner: Captioner | None = None
        self._coverage: NounCoverage | None = None
        self._coverage_problem = ""
        self._detections = DetectionBuffer()
        self._detection_classes: Sequence[str] = COCO_CLASSES
        self._outputs: Outputs | None = None
        self._failure = ""
        self._enabled = True
        self._latest: _Received | None = None
        self._mailbox: Mailbox[_Received] = Mailbox()
        self._statistics = Statistics()
        # The one thread that touches the engine. First come, first served: a service call waits for the image
        # in work and for at most one more.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="captioner")
        # Steady time: a simulation that stands still stops neither diagnostics nor the search for images.
        self._steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        # Describing waits for the engine and diagnostics wait for nobody, so each has a group of its own.
        self._describing, self._reporting = MutuallyExclusiveCallbackGroup(), MutuallyExclusiveCallbackGroup()
        self._settings = Parameters(
            self,
            CAPTION_NODE_PARAMETERS,
            is_configured=lambda: self._lifecycle != "unconfigured",
            on_change=self._on_parameters_changed,
        )
        self._input = ImageInput(self, IMAGE_TOPIC, self._on_image, self._statistics.count_lost)
        self._detection_input = DetectionInput(self, DETECTIONS_TOPIC, self._on_detections)
        self.create_service(DescribeImage, "~/describe_image", self._on_describe_image, callback_group=self._describing)
        self.create_service(
            DescribeLatest, "~/describe_latest", self._on_describe_latest, callback_group=self._describing
        )
        self.create_service(SetBool, "~/enable", self._on_enable)
        self._service_change_state.callback = _refusing(self._service_change_state.callback)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._diagnostics_timer = self._make_diagnostics_timer()
        self.create_timer(1.0, self._follow_transport, clock=self._steady_clock)
        if self._settings.values["autostart"]:
            self._autostart_timer = self.create_timer(0.0, self._autostart, clock=self._steady_clock)

    # Lifecycle

    @_transition
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Loads the engine and makes the publishers."""
        bundle = self._settings.values["bundle"]
        self.get_logger().info(f"loading the bundle {bundle}" if bundle else "loading the default bundle")
        started_s = time.monotonic()
        try:
            captioner = self._worker.submit(self._load).result()
        except Exception as error:  # whatever an engine throws, the node can be configured again
            self.fail(str(error))
            return TransitionCallbackReturn.FAILURE
        self._failure = ""
        self._outputs = Outputs(self, CAPTION_TOPIC)
        seconds = time.monotonic() - started_s
        self.get_logger().info(f"{captioner.model} on {captioner.engine_choice}; loaded in {seconds:.1f} s")
        if captioner.detector is not None:
            self.get_logger().info(f"objects from {captioner.detector.path} ({captioner.detector.layout})")
        return super().on_configure(state)

    @_transition
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribes to the images."""
        assert self._outputs is not None
        result = super().on_activate(state)
        self._statistics.start()
        self._open_inputs()
        self.get_logger().info(f"captioning {self._input.topic}, captions on {self._outputs.topic}")
        return result

    @_transition
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stops: the image in work still gets its answer, and nothing is published after this returns."""
        self._stop()
        self.get_logger().info("stopped captioning")
        return super().on_deactivate(state)

    @_transition
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Frees the engine and its memory."""
        self._release()
        self.get_logger().info("unloaded the engine")
        return super().on_cleanup(state)

    @_transition
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stops and frees, in whatever state the node is."""
        self._stop()
        self._release()
        return super().on_shutdown(state)

    @_transition
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Goes back to unconfigured after a transition that went wrong, so that it can be tried again."""
        self._stop()
        self._release()
        return TransitionCallbackReturn.SUCCESS

    def fail(self, failure: str) -> None:
        """Says in the log and in the diagnostics why the node cannot do its work, until it can."""
        self._failure = failure
        self.get_logger().error(failure)

    def close(self) -> None:
        """Answers the image in work and frees the engine; the node is of no use afterwards."""
        self._close_inputs()
        self._worker.submit(self._unload)
        self._worker.shutdown()

    @property
    def _lifecycle(self) -> str:
        label: str = self._state_machine.current_state[1]
        return label

    def _autostart(self) -> None:
        self._autostart_timer.cancel()
        for trigger in (self.trigger_configure, self.trigger_activate):
            if trigger() != TransitionCallbackReturn.SUCCESS:
                self.exit_status = 1
                return

    def _open_inputs(self) -> None:
        values, captioner = self._settings.values, self._captioner
        self._input.open(values["image_transport"])
        if captioner is not None and (captioner.detector is None or self._prefers_detections):
            self._detection_input.open(values["detection_type"], self._detection_classes)

    def _close_inputs(self) -> None:
        self._input.close()
        self._detection_input.close()
        self._mailbox.clear()
        self._detections.clear()

    def _stop(self) -> None:
        self._close_inputs()
        self._latest = None
        self._worker.submit(lambda: None).result()  # waits for the image in work

    def _release(self) -> None:
        self._worker.submit(self._unload).result()
        if self._outputs is not None:
            self._outputs.destroy()
            self._outputs = None

    # On the worker thread

    def _load(self) -> Captioner:
        values = self._settings.values
        check_type(values["detection_type"])
        if values["detection_classes"]:
            listed = read_class_names(Path(values["detection_classes"]).expanduser())
            self._detection_classes = [normalise(name) for name in listed]
        else:
            self._detection_classes = COCO_CLASSES
        captioner = self._load_captioner(
            _path(values["bundle"]),
            values["engine"],
            values["threads"] or None,
            _path(values["detector"]),
            values["detector_min_score"] or None,
        )
        captioner.warm_up()
        own_classes = captioner.detector.class_names if captioner.detector else ()
        class_names = (*own_classes, *self._detection_classes)
        self._coverage = self._loaded_coverage(class_names)
        self._captioner = captioner
        return captioner

    def _loaded_coverage(self, class_names: Sequence[str]) -> NounCoverage | None:
        values = self._settings.values
        self._coverage_problem = ""
        if not values["coverage"]:
            return None
        chosen = (values["spacy_pipeline"], values["word_vectors"], values["synonyms"])
        try:
            return self._load_coverage(*chosen, class_names)
        except Exception as error:  # of spaCy's and its libraries' choosing
            if any(chosen):
                raise
            # Nobody asked for it in so many words, and captions are worth having without it (spaCy has no rosdep key).
            self._coverage_problem = f"captions come without nouns and coverage: {error}"
            self.get_logger().warning(self._coverage_problem)
            return None

    def _unload(self) -> None:
        self._captioner = self._coverage = None
        gc.collect()
        if sys.platform == "linux":
            # glibc keeps freed memory for the next time; on a small robot others want it now.
            ctypes.CDLL(None).malloc_trim(0)

    def _answer_newest(self) -> None:
        delivery = self._mailbox.take()
        if delivery is None or self._outputs is None:  # stopped or switched off since
            return
        received, values = delivery.item, self._settings.values
        try:
            answered = self._answer(received.image, dropped=delivery.dropped)
            self._outputs.publish(answered)
            age_s = self._age_s(received.image)
            self._statistics.count_answer(
                answered.message.status,
                answered.message.status_message,
                latency_s=time.monotonic() - received.at_s if age_s is None else age_s,
                work_s=answered.work_s,
            )
            self._outputs.publish_overlay(
                answered,
                max_side_px=values["overlay_max_side_px"],
                jpeg_quality=values["overlay_jpeg_quality"],
            )
        except Exception as error:
            self.get_logger().error(f"cannot publish the answer: {error}")

    def _answer(self, image: ImageMessage, *, dropped: int = 0, any_age: bool = False) -> Answer:
        values = self._settings.values
        policy = Policy(values["camera"], 0.0 if any_age else values["max_age_s"], values["min_confidence"])
        captioner, fed = self._captioner, self._detection_input.is_fed
        gatherer = Gatherer(
            has_detector=captioner is not None and captioner.detector is not None,
            prefers_detections=self._prefers_detections,
            detections=self._detections,
            coverage=self._coverage,
            slop_s=values["detection_slop"],
            wait_s=values["detection_wait"] if fed else 0.0,
        )
        answered = answer(captioner, image, policy, gatherer=gatherer, age_s=self._age_s(image), dropped=dropped)
        if answered.evidence is not None:
            self._statistics.count_evidence(answered.evidence, detections_expected=fed)
            if answered.evidence.failure:
                self.get_logger().error(answered.evidence.failure, throttle_duration_sec=_LOG_PERIOD_S)
            elif fed and answered.evidence.origin is Origin.NOWHERE:
                self.get_logger().warning(
                    f"a caption goes out without objects: {answered.evidence.missing}",
                    throttle_duration_sec=_LOG_PERIOD_S,
                )
        reason = answered.message.status_message
        if answered.message.status == Caption.STATUS_ERROR:
            self.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
        elif answered.message.status == Caption.STATUS_STALE:
            self.get_logger().warning(reason, throttle_duration_sec=_LOG_PERIOD_S)
        return answered

    def _age_s(self, image: ImageMessage) -> float | None:
        """How old an image is now by its stamp; None when it has none."""
        stamp = image.header.stamp
        if stamp.sec == 0 and stamp.nanosec == 0:
            return None
        now = self.get_clock().now()
        return float((now - Time.from_msg(stamp, now.clock_type)).nanoseconds) / 1e9

    # Callbacks

    def _on_image(self, image: ImageMessage) -> None:
        received = _Received(image, time.monotonic())
        self._statistics.count_received()
        self._latest = received
        if not self._enabled:
            self._statistics.count_paused()
        elif self._mailbox.put(received):
            self._worker.submit(self._answer_newest)
        else:
            self._statistics.count_dropped()

    def _on_detections(self, detections: Detections, left_out: int) -> None:
        self._statistics.count_detections(left_out)
        if detections.stamp_ns:
            self._detections.add(detections)
        else:
            self.get_logger().warning(
                f"detections without a stamp on {self._detection_input.topic} belong to no image: the detector has to "
                "copy the header of its image",
                throttle_duration_sec=_LOG_PERIOD_S,
            )

    def _on_describe_image(
        self, request: DescribeImage.Request, response: DescribeImage.Response
    ) -> DescribeImage.Response:
        # Whoever hands an image over wants that one described, however old it is.
        response.caption = self._worker.submit(self._answer, request.image, any_age=True).result().message
        return response

    def _on_describe_latest(
        self, request: DescribeLatest.Request, response: DescribeLatest.Response
    ) -> DescribeLatest.Response:
        latest = self._latest
        if latest is not None:
            response.caption = self._worker.submit(self._answer, latest.image).result().message
        else:
            response.caption = Caption(
                camera=self._settings.values["camera"],
                status=Caption.STATUS_ERROR,
                status_message=(
                    f"no image has arrived on {self._input.topic} yet"
                    if self._lifecycle == "active"
                    else f"the node is {self._lifecycle} and receives no images: activate it first"
                ),
            )
        return response

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._enabled = request.data
        if not self._enabled:
            self._mailbox.clear()
        response.success = True
        response.message = f"captioning is {'on' if self._enabled else 'off'}"
        self.get_logger().info(response.message)
        return response

    def _on_parameters_changed(self, names: set[str]) -> None:
        if "diagnostics_period_s" in names:
            self.destroy_timer(self._diagnostics_timer)
            self._diagnostics_timer = self._make_diagnostics_timer()
        if "image_transport" in names:
            self._follow_transport()

    def _follow_transport(self) -> None:
        if self._lifecycle == "active":
            self._open_inputs()

    def _make_diagnostics_timer(self) -> Timer:
        return self.create_timer(
            self._settings.values["diagnostics_period_s"],
            self._report,
            callback_group=self._reporting,
            clock=self._steady_clock,
        )

    def _report(self) -> None:
        values, captioner = self._settings.values, self._captioner
        state = NodeState(
            name=f"{self.get_fully_qualified_name().lstrip('/')}: captions",
            lifecycle=self._lifecycle,
            enabled=self._enabled,
            failure=self._failure,
            image_timeout_s=values["image_timeout_s"],
            topic=self._input.topic,
            camera=values["camera"],
            model=captioner.model if captioner else "",
            bundle=str(captioner.bundle.path) if captioner else "",
            engine=captioner.engine if captioner else "",
            engine_choice=captioner.engine_choice if captioner else "",
            objects_from=self._objects_from(captioner),
            coverage="on" if self._coverage else self._coverage_problem or "off",
            coverage_problem=self._coverage_problem if captioner else "",
        )
        message = DiagnosticArray(status=[diagnostic_status(state, self._statistics.summary())])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def _objects_from(self, captioner: Captioner | None) -> str:
        if captioner is None:
            return ""
        topic = f"{self._detection_input.topic} ({self._detection_input.type})"
        if captioner.detector is None:
            return topic
        own = f"{captioner.detector.path} ({captioner.detector.layout})"
        return f"{topic}, else {own}" if self._prefers_detections else own

    @property
    def _prefers_detections(self) -> bool:
        """Who publishes detections means them: a named detector comes before them, the bundle's own does not."""
        return self._settings.values["prefer_detections"] or not self._settings.values["detector"]


def _path(given: str) -> Path | None:
    return Path(given).expanduser() if given else None


def main(args: Sequence[str] | None = None) -> int:
    """`smart-caption-node`: runs the caption node until SIGINT or SIGTERM.

    Args:
        args: the command line with its ROS arguments (`--ros-args ...`); None means that of the process.

    Returns:
        The exit status: 1 when the node could not start itself, else 0.
    """
    return run_node("smart-caption-node", CaptionNode, args)


if __name__ == "__main__":
    sys.exit(main())
