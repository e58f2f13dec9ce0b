"""The caption node: a managed lifecycle node that publishes captions of the newest images of one or several cameras.

It configures and activates itself unless `autostart` is false. The callbacks here receive images and requests; a
:class:`CaptionWorker` captions them on a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Header
from std_srvs.srv import SetBool

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes import bond
from smart_caption_ros.nodes.allocator import release_freed_memory, resident_mb
from smart_caption_ros.nodes.camera_stream import CameraStream, CameraTopics, ReceivedImage
from smart_caption_ros.nodes.caption_node_parameters import (
    CAPTION_NODE_PARAMETERS,
    CAPTION_NODE_RULES,
    RENAMED_PARAMETERS,
)
from smart_caption_ros.nodes.caption_worker import CaptionWorker, InterruptedWorkError
from smart_caption_ros.nodes.diagnostics import CameraState, NodeState, diagnostic_statuses
from smart_caption_ros.nodes.diagnostics_publisher import DiagnosticsPublisher
from smart_caption_ros.nodes.image_selection import Trigger
from smart_caption_ros.nodes.lifecycle import TransitionRequests, report_exceptions
from smart_caption_ros.nodes.messages import message_without_text
from smart_caption_ros.nodes.model_loading import LoadCaptioner, LoadCoverage, load_coverage, load_model
from smart_caption_ros.nodes.object_source import uses_topic
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.nodes.service_manager import ServiceReport
from smart_caption_ros.srv import DescribeImage, DescribeLatest
from smart_caption_ros.text import shortened

IMAGE_TOPIC = "image"
DETECTIONS_TOPIC = "detections"
CAPTION_TOPIC = "robot/caption"
CAMERA_CAPTION_TOPIC = "caption"
"""Topic of the captions in the namespace of a camera, where the node has several."""

_PUBLISHER_POLL_S = 1.0
_RELEASE_S = 30.0  # the next image is allocated anew then, which takes some milliseconds
_END_DELAY_S = 2.0  # a lifecycle manager asks for the state after shutdown
_MAX_FAILURE = 1000


class CaptionNode(LifecycleNode):
    """Subscribes to a camera and publishes captions; docs/running_on_a_robot.md describes its interface."""

    def __init__(
        self,
        *,
        load_captioner: LoadCaptioner | None = None,
        load_coverage: LoadCoverage = load_coverage,
        **node_options: Any,
    ) -> None:
        """Create the node in the state unconfigured.

        Args:
            load_captioner: loads the captioner when the node is configured; None: :meth:`Captioner.from_bundle`.
            load_coverage: loads noun coverage when the node is configured.
            node_options: arguments of :class:`rclpy.node.Node` (namespace, parameter_overrides, context ...).

        Raises:
            ValueError: a parameter has an invalid value; one sentence.
        """
        super().__init__("caption_node", **node_options)
        self.exit_status: int | None = None
        self._load_coverage = load_coverage
        self._failure = ""
        self._enabled = True
        # Parameters, publishers and transitions change the inputs, each on another thread.
        self._inputs_lock = threading.Lock()
        self._receives = False
        self._heartbeat: bond.Heartbeat | None = None
        self._settings = Parameters(
            self,
            CAPTION_NODE_PARAMETERS,
            renamed=RENAMED_PARAMETERS,
            rules=CAPTION_NODE_RULES,
            is_configured=lambda: self._lifecycle != "unconfigured",
            on_change=self._on_parameters_changed,
        )
        names: tuple[str, ...] = self._values["cameras"]
        self._cameras = tuple(self._camera_stream(name) for name in names or ("",))
        # With several cameras, the image of a request is of none of them.
        requests = self._camera_stream("") if names else self._cameras[0]
        self._worker = CaptionWorker(self, self._settings, self._cameras, requests)
        # Threads of ONNX Runtime that poll for work would take CPU time from the robot's other nodes.
        self._load_captioner: LoadCaptioner = load_captioner or partial(
            Captioner.from_bundle, spinning=False, is_cancelled=self._worker.loading_cancelled.is_set
        )
        # A group of its own: a service that waits for the engine must not block the other callbacks.
        describing = MutuallyExclusiveCallbackGroup()
        self.create_service(DescribeImage, "~/describe_image", self._on_describe_image, callback_group=describing)
        for service, cameras in {
            "~/describe_latest": self._cameras,
            **{f"~/{camera.name}/describe_latest": (camera,) for camera in self._cameras if camera.name},
        }.items():
            self.create_service(
                DescribeLatest, service, partial(self._on_describe_latest, cameras), callback_group=describing
            )
        self.create_service(SetBool, "~/enable", self._on_enable)
        # A group of its own as well: a transition may load for minutes, and meanwhile lifecycle and parameter services
        # answer, and a second request may cancel it. rclpy creates all of them in the node's default group.
        transitions = ReentrantCallbackGroup()
        self._service_change_state.callback_group = transitions
        transitions.add_entity(self._service_change_state)
        self._transition_requests = TransitionRequests(
            self._service_change_state.callback, lambda: self._lifecycle, self._worker.cancel_loading
        )
        self._service_change_state.callback = self._transition_requests.answer
        self._diagnostics = DiagnosticsPublisher(self, self._statuses, self._values["diagnostics_period_s"])
        self._service_report = ServiceReport(
            self, state=lambda: self._lifecycle, is_ready=self._has_started, problem=self._restart_reason
        )
        # Steady time, so that a simulation that stands still does not stop the search for publishers.
        steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_PUBLISHER_POLL_S, self._follow_publishers, clock=steady_clock)
        # Images of changing sizes, listeners and parameters leave free memory between the blocks that live on.
        releasing = MutuallyExclusiveCallbackGroup()
        self.create_timer(_RELEASE_S, release_freed_memory, callback_group=releasing, clock=steady_clock)
        if self._values["autostart"]:
            # Reentrant, the timer would call it again before it cancels the timer.
            starting = MutuallyExclusiveCallbackGroup()
            self._autostart_timer = self.create_timer(0.0, self._autostart, callback_group=starting, clock=steady_clock)

    # Lifecycle

    @report_exceptions
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the model and create the publishers."""
        values = self._values
        bundle = values["bundle"]
        self.get_logger().info(f"loading the bundle {bundle}" if bundle else "loading the default bundle")
        started_s = time.monotonic()
        try:
            if values["bond_heartbeat_period_s"]:
                bond.check_is_installed()
            model = self._worker.load(lambda: load_model(values, self._load_captioner, self._load_coverage))
        except InterruptedWorkError:
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # engines raise exceptions of any type, and the node can be configured again
            if self._worker.loading_cancelled.is_set():
                self.get_logger().info("loading was cancelled")
            else:
                self.fail(str(error))
            return TransitionCallbackReturn.FAILURE
        self._failure = ""
        for camera in self._cameras:
            camera.create_outputs()
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
            camera.statistics.restart_window()
        with self._inputs_lock:
            self._receives = True
            self._open_inputs()
        if self._values["bond_heartbeat_period_s"]:
            self._heartbeat = bond.Heartbeat(self, self._values["bond_heartbeat_period_s"])
        for camera in self._cameras:
            assert camera.outputs is not None
            self.get_logger().info(f"captioning {camera.image_input.topic}, captions on {camera.outputs.topic}")
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
        self._release()
        self.get_logger().info("unloaded the engine")
        return super().on_cleanup(state)

    @report_exceptions
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and free the model, from any state."""
        self._stop()
        self._release()
        # A finalized node has no transition back. The request for this transition is answered first.
        steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._end_timer = self.create_timer(_END_DELAY_S, self._end, clock=steady_clock)
        return super().on_shutdown(state)

    @report_exceptions
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to unconfigured after a failed transition, so that it can be repeated."""
        self._stop()
        self._release()
        return TransitionCallbackReturn.SUCCESS

    def fail(self, failure: str) -> None:
        """Report a failure to the log, and to the diagnostics until the node is configured."""
        self._failure = shortened(failure, _MAX_FAILURE)  # it is published every second
        self.get_logger().error(self._failure)

    def interrupt(self) -> None:
        """Let the callbacks that wait for the model return, and cancel loading, which is not waited for."""
        self._service_report.stop()
        self._worker.interrupt()

    def close(self) -> bool:
        """Answer the image in progress, free the model and end all threads.

        Returns:
            Whether all threads have ended.
        """
        self._break_bond()
        self._close_inputs()
        return self._worker.close()

    @property
    def _lifecycle(self) -> str:
        label: str = self._state_machine.current_state[1]
        return label

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

    def _has_started(self) -> bool:
        """Return whether the node is active, or waits for its lifecycle manager."""
        return self._lifecycle == "active" or not self._values["autostart"]

    def _restart_reason(self) -> str:
        """Return what only a restart of the process helps against; empty where nothing is wrong."""
        problems = (camera.image_input.problem for camera in self._cameras)
        return self._worker.problem(self._values["work_timeout_s"]) or next(filter(None, problems), "")

    def _camera_stream(self, name: str) -> CameraStream:
        topics = CameraTopics(IMAGE_TOPIC, DETECTIONS_TOPIC, CAPTION_TOPIC)
        if name:
            topics = CameraTopics(*(f"{name}/{each}" for each in (IMAGE_TOPIC, DETECTIONS_TOPIC, CAMERA_CAPTION_TOPIC)))
        return CameraStream(self, name, topics, self._on_image)

    def _open_inputs(self) -> None:
        model = self._worker.model
        for camera in self._cameras:
            camera.image_input.open(self._values["image_transport"])
            if model is not None and uses_topic(self._values):
                camera.detection_input.open(self._values["detection_type"], model.detection_classes)

    def _close_inputs(self) -> None:
        with self._inputs_lock:
            self._receives = False
            for camera in self._cameras:
                camera.close_inputs()

    def _stop(self) -> None:
        self._break_bond()
        self._close_inputs()
        self._worker.wait_until_idle()
        for camera in self._cameras:
            camera.forget()

    def _break_bond(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def _release(self) -> None:
        self._worker.unload()
        for camera in self._cameras:
            camera.destroy_outputs()

    def _on_image(self, camera: CameraStream, image: ReceivedImage) -> None:
        values = self._values
        if (
            self._enabled
            and values["trigger"] != Trigger.REQUEST.value
            and camera.rate.passes(image.at_s, values["max_rate_hz"])
        ):
            self._worker.put(camera, image)
        else:
            camera.statistics.count_passed_over(1)

    # Services

    def _on_describe_image(
        self, request: DescribeImage.Request, response: DescribeImage.Response
    ) -> DescribeImage.Response:
        # A caller that sends an image wants that one captioned, whatever its age.
        response.caption = self._worker.describe_request(request.image)
        return response

    def _on_describe_latest(
        self, cameras: Sequence[CameraStream], request: DescribeLatest.Request, response: DescribeLatest.Response
    ) -> DescribeLatest.Response:
        received = [(camera, image) for camera in cameras if (image := camera.latest) is not None]
        if received:
            response.caption = self._worker.describe_latest(*max(received, key=lambda each: each[1].at_s))
        else:
            reason = (
                f"no image has arrived on {' or '.join(camera.image_input.awaited for camera in cameras)} yet"
                if self._lifecycle == "active"
                else f"the node is {self._lifecycle} and receives no images"
            )
            if self._lifecycle in ("unconfigured", "inactive"):
                reason += ": activate it first"
            name = self._worker.camera_name(cameras[0]) if len(cameras) == 1 else ""
            response.caption = message_without_text(Caption.STATUS_ERROR, reason, Header(), camera=name)
        return response

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._enabled = request.data
        if not self._enabled:
            self._discard_waiting()
        response.success = True
        response.message = f"captioning is {'on' if self._enabled else 'off'}"
        self.get_logger().info(response.message)
        return response

    # Parameters, publishers of the inputs, diagnostics

    def _on_parameters_changed(self, names: set[str]) -> None:
        if "diagnostics_period_s" in names:
            self._diagnostics.change_period(self._values["diagnostics_period_s"])
        if "image_transport" in names:
            self._follow_publishers()
        if "trigger" in names and self._values["trigger"] == Trigger.REQUEST.value:
            self._discard_waiting()

    def _discard_waiting(self) -> None:
        for camera in self._cameras:
            camera.discard_waiting()

    def _follow_publishers(self) -> None:
        """Subscribe to the topics and types that are published now."""
        with self._inputs_lock:
            if self._receives:
                self._open_inputs()

    def _statuses(self) -> list[DiagnosticStatus]:
        model = self._worker.model
        captioner = model.captioner if model is not None else None
        coverage_problem = model.coverage_problem if model is not None else ""
        node = NodeState(
            name=self.get_fully_qualified_name().lstrip("/"),
            lifecycle=self._lifecycle,
            enabled=self._enabled,
            failure=self._failure,
            in_work_s=self._worker.in_work_s,
            work_timeout_s=self._values["work_timeout_s"],
            lacks_clock=self._worker.lacks_clock,
            model=captioner.model if captioner else "",
            bundle=str(captioner.bundle.path) if captioner else "",
            engine=captioner.engine if captioner else "",
            engine_choice=captioner.engine_choice if captioner else "",
            engine_fallbacks=captioner.engine_fallbacks if captioner else (),
            namesakes=self._namesakes(),
            memory_mb=resident_mb(),
            coverage="on" if model and model.coverage else coverage_problem or "off",
            coverage_problem=coverage_problem,
        )
        return diagnostic_statuses(node, [self._camera_state(camera, captioner) for camera in self._cameras])

    def _namesakes(self) -> int:
        own = (self.get_name(), self.get_namespace())
        return max(0, self.get_node_names_and_namespaces().count(own) - 1)

    def _camera_state(self, camera: CameraStream, captioner: Captioner | None) -> CameraState:
        return CameraState(
            name=self._worker.camera_name(camera),
            image_timeout_s=self._values["image_timeout_s"],
            input_problem=camera.image_input.problem,
            topic=camera.image_input.topic,
            awaited=camera.image_input.awaited,
            objects_from=self._objects_from(camera, captioner) if captioner else "",
            summary=camera.statistics.summary(),
        )

    def _objects_from(self, camera: CameraStream, captioner: Captioner) -> str:
        topic = camera.detection_input
        sources = [f"{topic.topic} ({topic.type})"] if uses_topic(self._values) else []
        if captioner.detector is not None:
            sources.append(f"{captioner.detector.path} ({captioner.detector.layout})")
        return ", else ".join(sources) or "nothing"
