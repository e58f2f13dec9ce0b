"""The caption node: a managed lifecycle node that publishes captions of the newest images of one or several cameras.

It configures and activates itself unless `autostart` is false. An image passes through three other modules in one
direction: :class:`.camera.Camera` receives it, :class:`.worker.Worker` captions it, :class:`.publisher.Publisher`
publishes its caption.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Header
from std_srvs.srv import SetBool

from smart_caption_ros import msg
from smart_caption_ros.caption_messages import stamp_ns, to_message
from smart_caption_ros.captioning import Captioner
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.allocator import release_freed_memory, resident_mb
from smart_caption_ros.nodes.caption import bond
from smart_caption_ros.nodes.caption.camera import Camera
from smart_caption_ros.nodes.caption.diagnostics import IMAGE_TIMEOUT_S, NodeState, diagnostic_statuses
from smart_caption_ros.nodes.caption.lifecycle import TransitionRequests
from smart_caption_ros.nodes.caption.model import LoadCaptioner, LoadCoverage, load_coverage, load_model
from smart_caption_ros.nodes.caption.parameters import CAPTION_NODE_PARAMETERS, Trigger, missing_detector
from smart_caption_ros.nodes.caption.publisher import complete_record, error_description, trust_of
from smart_caption_ros.nodes.caption.records import ReceivedImage
from smart_caption_ros.nodes.caption.service_manager import ServiceReport
from smart_caption_ros.nodes.caption.worker import WORK_TIMEOUT_S, InterruptedWorkError, Worker, lacks_clock
from smart_caption_ros.nodes.diagnostics_publisher import DiagnosticsPublisher
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.nodes.timers import create_steady_timer
from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.srv import DescribeImage, DescribeLatest
from smart_caption_ros.text import MAX_SENTENCE, visible

MAX_WAITING_REQUESTS = 16
"""Maximum number of waiting requests to the services that caption an image; further requests are refused as busy."""

_MAX_UNREAD_REQUESTS = 200  # kept by the middleware until they are answered or refused
_PUBLISHER_POLL_S = 1.0
_IMAGE_POLL_S = 0.02
_RELEASE_PERIOD_S = 30.0  # a shorter period costs time: the next image needs new memory, some milliseconds
_END_TIMEOUT_S = 3.0
_END_DELAY_S = 2.0  # so that a lifecycle manager can read the state after the shutdown
_LOG_PERIOD_S = 5.0


def report_exceptions(
    transition: "Callable[[CaptionNode, LifecycleState], TransitionCallbackReturn]",
) -> "Callable[[CaptionNode, LifecycleState], TransitionCallbackReturn]":
    """Wrap a transition callback to report its exceptions, which rclpy turns into ERROR without a message."""

    @wraps(transition)
    def reporting(node: "CaptionNode", state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception as error:
            node.fail(f"{transition.__name__}: {error}")
            return TransitionCallbackReturn.ERROR

    return reporting


class CaptionNode(LifecycleNode):
    """Subscribes to a camera and publishes captions; docs/nodes.md describes its interface."""

    def __init__(
        self,
        *,
        load_captioner: LoadCaptioner | None = None,
        load_coverage: LoadCoverage = load_coverage,
        **node_options: Any,
    ) -> None:
        """Create the node in the state unconfigured; see :class:`smart_caption_ros.nodes.running.RunnableNode`.

        Args:
            load_captioner: loads the captioner when the node is configured; None: :meth:`Captioner.from_bundle`.
        """
        super().__init__("caption_node", **node_options)
        self.exit_status: int | None = None
        self._load_coverage = load_coverage
        self._failure = ""
        # Inputs are opened and closed on the threads of transitions, services and the timer that follows publishers.
        self._inputs_lock = threading.Lock()
        self._is_receiving = False
        self._heartbeat: bond.Heartbeat | None = None
        self._settings = Parameters(
            self,
            CAPTION_NODE_PARAMETERS,
            rule=missing_detector,
            is_configured=lambda: self._lifecycle != "unconfigured",
            on_change=self._on_parameters_changed,
        )
        self._worker = Worker(self, self._settings)
        self._transition_requests = TransitionRequests(self, self._worker.cancel_loading)
        names: tuple[str, ...] = self._values["cameras"]
        self._cameras = tuple(Camera(self, name, self._settings, self._worker) for name in names or ("",))
        # Without spinning: threads of ONNX Runtime that poll for work take CPU time from other nodes of the robot.
        self._load_captioner: LoadCaptioner = load_captioner or partial(
            Captioner.from_bundle, spinning=False, is_cancelled=self._worker.loading_cancelled.is_set
        )
        # Each waiting request has a thread of the executor; further requests are refused at once.
        describing = ReentrantCallbackGroup()
        self._requests_lock = threading.Lock()
        self._waiting_requests = self._answered_requests = self._refused_requests = 0
        qos = QoSProfile(depth=_MAX_UNREAD_REQUESTS, reliability=ReliabilityPolicy.RELIABLE)
        self.create_service(
            DescribeImage, "~/describe_image", self._on_describe_image, callback_group=describing, qos_profile=qos
        )
        for service, cameras in {
            "~/describe_latest": self._cameras,
            **{f"~/{camera.name}/describe_latest": (camera,) for camera in self._cameras if camera.name},
        }.items():
            self.create_service(
                DescribeLatest,
                service,
                partial(self._on_describe_latest, cameras),
                callback_group=describing,
                qos_profile=qos,
            )
        self.create_service(SetBool, "~/enable", self._on_enable)
        self._diagnostics = DiagnosticsPublisher(self, self._statuses)
        self._service_report = ServiceReport(
            self,
            state=lambda: self._lifecycle,
            # The node is active, or waits for its lifecycle manager.
            is_ready=lambda: self._lifecycle == "active" or not self._values["autostart"],
            problem=self._restart_reason,
        )
        create_steady_timer(self, _PUBLISHER_POLL_S, self._follow_publishers)
        # Images of different sizes, new subscribers and parameters leave gaps between used blocks of memory.
        create_steady_timer(self, _RELEASE_PERIOD_S, release_freed_memory)
        if self._values["autostart"]:
            self._autostart_timer = create_steady_timer(self, 0.0, self._autostart)

    # Lifecycle

    @report_exceptions
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the model and create the publishers."""
        values = self._values
        bundle = values["bundle"]
        self.get_logger().info(f"loading the bundle {bundle}" if bundle else "loading the default bundle")
        started_s = time.monotonic()
        try:
            model = self._worker.load(lambda: load_model(values, self._load_captioner, self._load_coverage))
        except InterruptedWorkError:
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # of any type, from an engine; the node can be configured again
            if self._worker.loading_cancelled.is_set():
                self.get_logger().info("loading was cancelled")
            else:
                self.fail(str(error))
            return TransitionCallbackReturn.FAILURE
        self._failure = ""
        for camera in self._cameras:
            camera.publisher.create_topics()
        captioner, seconds = model.captioner, time.monotonic() - started_s
        self.get_logger().info(f"{captioner.model} on {captioner.engine_choice}; loaded in {seconds:.1f} s")
        if captioner.detector is not None:
            self.get_logger().info(f"objects from {captioner.detector.path} ({captioner.detector.layout})")
        if model.coverage_problem:
            self.get_logger().warning(model.coverage_problem)
        return super().on_configure(state)

    @report_exceptions
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to the images."""
        result = super().on_activate(state)
        for camera in self._cameras:
            camera.publisher.statistics.restart_windows()
        with self._inputs_lock:
            self._is_receiving = True
            self._open_inputs()
        if not self._values["autostart"] and bond.Status is not None:
            self._heartbeat = bond.Heartbeat(self)
        for camera in self._cameras:
            self.get_logger().info(f"captioning {camera.image_input.topic}, captions on {camera.publisher.topic}")
        return result

    @report_exceptions
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Unsubscribe; the image in progress is answered, and nothing is published after this returns."""
        self._stop()
        self.get_logger().info("stopped captioning")
        return super().on_deactivate(state)

    @report_exceptions
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free the model and its memory."""
        self._unload()
        self.get_logger().info("unloaded the engine")
        return super().on_cleanup(state)

    @report_exceptions
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and free the model, from any state."""
        self._stop()
        self._unload()
        # A finalized node has no other transition, so the process ends, after the request has been answered.
        create_steady_timer(self, _END_DELAY_S, self._end)
        return super().on_shutdown(state)

    @report_exceptions
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to unconfigured after a failed transition, so that it can be repeated."""
        self._stop()
        self._unload()
        return TransitionCallbackReturn.SUCCESS

    def fail(self, failure: str) -> None:
        """Log a failure, and show it in the diagnostics until the node is configured."""
        self._failure = visible(failure, MAX_SENTENCE)  # it is published every second
        self.get_logger().error(self._failure)

    def interrupt(self) -> None:
        """End the waits of callbacks for the model, detections or an image, and cancel loading."""
        self._is_receiving = False
        self._service_report.stop()
        self._worker.interrupt()
        for camera in self._cameras:
            camera.interrupt()

    def close(self) -> bool:
        """Answer the image in progress, free the model and end all threads.

        Returns:
            Whether all threads have ended.
        """
        self._break_bond()
        self._close_inputs()
        for camera in self._cameras:
            camera.close()
        has_ended = self._worker.close(_END_TIMEOUT_S)
        for camera in self._cameras:
            has_ended = camera.publisher.close(_END_TIMEOUT_S) and has_ended
        return has_ended

    @property
    def _lifecycle(self) -> str:
        return self._transition_requests.state

    @property
    def _values(self) -> Mapping[str, Any]:
        return self._settings.values

    def _autostart(self) -> None:
        self._autostart_timer.cancel()
        with self._transition_requests.in_progress:
            for trigger in (self.trigger_configure, self.trigger_activate):
                if trigger() != TransitionCallbackReturn.SUCCESS:
                    if not self._worker.loading_cancelled.is_set():
                        self.exit_status = 1
                    return

    def _end(self) -> None:
        self.exit_status = 0

    def _restart_reason(self) -> str:
        """Return the problem that needs a restart of the process; empty if there is none."""
        in_work_s = self._in_work_s()
        return (
            f"an image has been in work for {in_work_s:.1f} s" if in_work_s > WORK_TIMEOUT_S else self._worker.problem
        )

    def _in_work_s(self) -> float:
        """Return how long an image has been in work, beyond its wait for detections, seconds; 0 if none is."""
        return max(self._worker.in_work_s, *(camera.publisher.in_work_s for camera in self._cameras))

    def _open_inputs(self) -> None:
        model = self._worker.model
        if model is not None:
            for camera in self._cameras:
                camera.open_inputs(model)

    def _close_inputs(self) -> None:
        with self._inputs_lock:
            self._is_receiving = False
            for camera in self._cameras:
                camera.close_inputs()

    def _stop(self) -> None:
        self._break_bond()
        self._close_inputs()
        self._worker.wait_until_idle()
        self._worker.forget()
        for camera in self._cameras:
            camera.publisher.wait_until_idle()
            camera.publisher.forget()
            camera.forget()

    def _break_bond(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def _unload(self) -> None:
        self._worker.unload()
        for camera in self._cameras:
            camera.publisher.destroy_topics()

    # Services

    def _on_describe_image(
        self, request: DescribeImage.Request, response: DescribeImage.Response
    ) -> DescribeImage.Response:
        # The image is captioned whatever its age. With several cameras it is unknown which one it is from.
        camera = self._cameras[0] if len(self._cameras) == 1 else None
        image = (
            camera.received_image(request.image)
            if camera
            else ReceivedImage(request.image, stamp_ns(request.image.header), time.monotonic())
        )
        response.caption = self._describe(camera, image, max_age_s=0.0)
        return response

    def _on_describe_latest(
        self, cameras: Sequence[Camera], request: DescribeLatest.Request, response: DescribeLatest.Response
    ) -> DescribeLatest.Response:
        with self._awake(cameras):
            received = [(image, camera) for camera in cameras if (image := camera.latest) is not None]
            if received:
                image, camera = max(received, key=lambda pair: pair[0].received_s)
                # The newest image of a slow camera may be older than max_age_s.
                max_age_s = self._values["max_age_s"] and max(self._values["max_age_s"], IMAGE_TIMEOUT_S)
                response.caption = self._describe(camera, image, max_age_s=max_age_s)
            else:
                reason = (
                    f"no image has arrived on {' or '.join(camera.image_input.image_topics for camera in cameras)} yet"
                    if self._lifecycle == "active"
                    else f"the node is {self._lifecycle} and receives no images"
                )
                if self._lifecycle in ("unconfigured", "inactive"):
                    reason += ": activate it first"
                response.caption = error_message(reason, Header(), cameras[0] if len(cameras) == 1 else None)
        return response

    @contextmanager
    def _awake(self, cameras: Sequence[Camera]) -> Iterator[None]:
        """Keep lazy cameras awake, and first wait for an image of one of them, at most :data:`IMAGE_TIMEOUT_S`."""
        if not self._values["lazy"]:
            yield
            return
        with self._inputs_lock:
            for camera in cameras:
                camera.requests += 1
            if self._is_receiving:
                self._open_inputs()
        try:
            end_s = time.monotonic() + IMAGE_TIMEOUT_S
            # Further requests do not wait here, so that the executor has threads left for the images.
            while (
                self._is_receiving
                and time.monotonic() < end_s
                and all(camera.requests <= MAX_WAITING_REQUESTS and camera.latest is None for camera in cameras)
            ):
                time.sleep(_IMAGE_POLL_S)
            yield
        finally:
            with self._inputs_lock:
                for camera in cameras:
                    camera.requests -= 1

    def _describe(self, camera: Camera | None, image: ReceivedImage, *, max_age_s: float) -> Caption:
        """Caption an image for a service; never raises, because the caller would then get no response."""
        header, detections, model = image.message.header, image.detections, self._worker.model
        with self._requests_lock:
            is_busy = self._waiting_requests >= MAX_WAITING_REQUESTS
            self._waiting_requests += not is_busy
            self._refused_requests += is_busy
        if is_busy:
            reason = f"the node is busy: {MAX_WAITING_REQUESTS} requests are waiting already; ask again"
            return error_message(reason, header, camera)
        try:
            if detections is not None and camera is not None and camera.waits_for_detections(image):
                detections.wait()  # on the thread of the service, because the worker must not wait
            record = self._worker.describe(image, max_age_s=max_age_s)
            if camera is not None:
                return camera.publisher.complete(record, header, detections, model)[1]
            return complete_record(record, header, None, model, trust_of(self._settings))[1]
        except Exception as error:
            reason = f"the image cannot be answered: {error_description(error)}"
            if not isinstance(error, InterruptedWorkError):
                self.get_logger().error(reason, throttle_duration_sec=_LOG_PERIOD_S)
            return error_message(reason, header, camera)
        finally:
            with self._requests_lock:
                self._waiting_requests -= 1
                self._answered_requests += 1

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        for camera in self._cameras:
            camera.is_enabled = request.data
            if not camera.is_enabled:
                camera.discard_waiting()
        response.success = True
        response.message = f"captioning is {'on' if request.data else 'off'}"
        self.get_logger().info(response.message)
        return response

    # Parameters, publishers of the inputs, diagnostics

    def _on_parameters_changed(self, names: set[str]) -> None:
        if "trigger" in names and self._values["trigger"] == Trigger.REQUEST.value:
            for camera in self._cameras:
                camera.discard_waiting()

    def _follow_publishers(self) -> None:
        with self._inputs_lock:
            if self._is_receiving:
                self._open_inputs()

    def _statuses(self) -> list[DiagnosticStatus]:
        node = NodeState(
            name=self.get_fully_qualified_name().lstrip("/"),
            lifecycle=self._lifecycle,
            enabled=all(camera.is_enabled for camera in self._cameras),
            failure=self._failure,
            in_work_s=self._in_work_s(),
            lacks_clock=lacks_clock(self),
            model=self._worker.model,
            nodes_of_this_name=self.get_node_names_and_namespaces().count((self.get_name(), self.get_namespace())),
            memory_mb=resident_mb(),
            requests_answered=self._answered_requests,
            requests_refused=self._refused_requests,
        )
        return diagnostic_statuses(node, self._cameras)


def error_message(reason: str, header: Header, camera: Camera | None) -> Caption:
    """Build the message for an image that could not be captioned."""
    name = camera.name if camera is not None else ""
    return to_message(msg, CaptionRecord.without_caption(CaptionStatus.ERROR, reason, camera=name), header)
