"""The caption node: a managed lifecycle node that publishes a caption for the newest image of a camera.

It configures and activates itself unless `autostart` is false. The callbacks here receive images and requests; a
:class:`CaptionWorker` captions them on a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Header
from std_srvs.srv import SetBool

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.answering import ImageMessage
from smart_caption_ros.nodes.caption_node_parameters import (
    CAPTION_NODE_PARAMETERS,
    CAPTION_NODE_RULES,
    RENAMED_PARAMETERS,
)
from smart_caption_ros.nodes.caption_worker import CaptionWorker, InterruptedWorkError, ReceivedImage
from smart_caption_ros.nodes.detection_buffer import DetectionBuffer, Detections
from smart_caption_ros.nodes.detection_input import DetectionInput
from smart_caption_ros.nodes.diagnostics import DiagnosticsPublisher, NodeState, diagnostic_status
from smart_caption_ros.nodes.image_input import ImageInput
from smart_caption_ros.nodes.lifecycle import refuse_invalid_transitions, report_exceptions
from smart_caption_ros.nodes.messages import message_without_text
from smart_caption_ros.nodes.model_loading import LoadCaptioner, LoadCoverage, load_coverage, load_model
from smart_caption_ros.nodes.node_statistics import Statistics
from smart_caption_ros.nodes.object_source import uses_topic
from smart_caption_ros.nodes.outputs import Outputs
from smart_caption_ros.nodes.parameters import Parameters
from smart_caption_ros.srv import DescribeImage, DescribeLatest
from smart_caption_ros.text import shortened

IMAGE_TOPIC = "image"
DETECTIONS_TOPIC = "detections"
CAPTION_TOPIC = "robot/caption"

_LOG_PERIOD_S = 5.0
_PUBLISHER_POLL_S = 1.0
_END_DELAY_S = 0.5
_MAX_FAILURE = 1000

# Idle threads that poll for work would take CPU time from the robot's other nodes.
_load_captioner = partial(Captioner.from_bundle, spinning=False)


class CaptionNode(LifecycleNode):
    """Subscribes to a camera and publishes captions; docs/running_on_a_robot.md describes its interface."""

    def __init__(
        self,
        *,
        load_captioner: LoadCaptioner = _load_captioner,
        load_coverage: LoadCoverage = load_coverage,
        **node_options: Any,
    ) -> None:
        """Create the node in the state unconfigured.

        Args:
            load_captioner: loads the captioner when the node is configured.
            load_coverage: loads noun coverage when the node is configured.
            node_options: arguments of :class:`rclpy.node.Node` (namespace, parameter_overrides, context ...).

        Raises:
            ValueError: a parameter has an invalid value; one sentence.
        """
        super().__init__("caption_node", **node_options)
        self.exit_status: int | None = None
        self._load_captioner = load_captioner
        self._load_coverage = load_coverage
        self._failure = ""
        self._enabled = True
        # Parameters, publishers and transitions change the inputs, each on another thread.
        self._inputs_lock = threading.Lock()
        self._receives = False
        self._latest_image: ImageMessage | None = None
        self._statistics = Statistics()
        self._settings = Parameters(
            self,
            CAPTION_NODE_PARAMETERS,
            renamed=RENAMED_PARAMETERS,
            rules=CAPTION_NODE_RULES,
            is_configured=lambda: self._lifecycle != "unconfigured",
            on_change=self._on_parameters_changed,
        )
        self._image_input = ImageInput(self, IMAGE_TOPIC, self._on_image, self._statistics)
        self._detections = DetectionBuffer()
        self._detection_input = DetectionInput(self, DETECTIONS_TOPIC, self._on_detections)
        self._worker = CaptionWorker(self, self._settings, self._statistics, self._detections, self._detection_input)
        # A group of its own: a service that waits for the engine must not block the other callbacks.
        describing = MutuallyExclusiveCallbackGroup()
        self.create_service(DescribeImage, "~/describe_image", self._on_describe_image, callback_group=describing)
        self.create_service(DescribeLatest, "~/describe_latest", self._on_describe_latest, callback_group=describing)
        self.create_service(SetBool, "~/enable", self._on_enable)
        # A group of its own as well: a transition may load for minutes, and meanwhile lifecycle and parameter services
        # answer. rclpy creates all of them in the node's default group.
        transitions = MutuallyExclusiveCallbackGroup()
        self._service_change_state.callback_group = transitions
        transitions.add_entity(self._service_change_state)
        self._service_change_state.callback = refuse_invalid_transitions(self._service_change_state.callback)
        self._diagnostics = DiagnosticsPublisher(self, self._status, self._values["diagnostics_period_s"])
        # Steady time, so that a simulation that stands still does not stop the search for publishers.
        steady_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_PUBLISHER_POLL_S, self._follow_publishers, clock=steady_clock)
        if self._values["autostart"]:
            self._autostart_timer = self.create_timer(
                0.0, self._autostart, callback_group=transitions, clock=steady_clock
            )

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
        except Exception as error:  # engines raise exceptions of any type, and the node can be configured again
            self.fail(str(error))
            return TransitionCallbackReturn.FAILURE
        self._failure = ""
        self._worker.outputs = Outputs(self, CAPTION_TOPIC)
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
        assert self._worker.outputs is not None
        result = super().on_activate(state)
        self._statistics.restart_window()
        with self._inputs_lock:
            self._receives = True
            self._open_inputs()
        self.get_logger().info(f"captioning {self._image_input.topic}, captions on {self._worker.outputs.topic}")
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
        """Let the callbacks that wait for the model return; loading is not waited for."""
        self._worker.interrupt()

    def close(self) -> bool:
        """Answer the image in progress, free the model and end all threads.

        Returns:
            Whether all threads have ended.
        """
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
        for trigger in (self.trigger_configure, self.trigger_activate):
            if trigger() != TransitionCallbackReturn.SUCCESS:
                self.exit_status = 1
                return

    def _end(self) -> None:
        self.exit_status = 0

    def _open_inputs(self) -> None:
        self._image_input.open(self._values["image_transport"])
        model = self._worker.model
        if model is not None and uses_topic(self._values):
            self._detection_input.open(self._values["detection_type"], model.detection_classes)

    def _close_inputs(self) -> None:
        with self._inputs_lock:
            self._receives = False
            self._image_input.close()
            self._detection_input.close()
        self._worker.discard_waiting()
        self._detections.clear()

    def _stop(self) -> None:
        self._close_inputs()
        self._latest_image = None
        self._worker.wait_until_idle()

    def _release(self) -> None:
        self._worker.unload()
        if self._worker.outputs is not None:
            self._worker.outputs.destroy()
            self._worker.outputs = None

    # Topics

    def _on_image(self, image: ImageMessage) -> None:
        received = ReceivedImage(image, time.monotonic())
        self._statistics.count_received()
        self._latest_image = image
        if not self._enabled:
            self._statistics.count_passed_over(1)
        elif not self._worker.put(received):
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

    # Services

    def _on_describe_image(
        self, request: DescribeImage.Request, response: DescribeImage.Response
    ) -> DescribeImage.Response:
        # A caller that sends an image wants that one captioned, whatever its age.
        response.caption = self._worker.describe(request.image, any_age=True)
        return response

    def _on_describe_latest(
        self, request: DescribeLatest.Request, response: DescribeLatest.Response
    ) -> DescribeLatest.Response:
        image = self._latest_image
        if image is not None:
            response.caption = self._worker.describe(image)
        else:
            reason = (
                f"no image has arrived on {self._image_input.awaited} yet"
                if self._lifecycle == "active"
                else f"the node is {self._lifecycle} and receives no images"
            )
            if self._lifecycle in ("unconfigured", "inactive"):
                reason += ": activate it first"
            camera = self._values["camera"]
            response.caption = message_without_text(Caption.STATUS_ERROR, reason, Header(), camera=camera)
        return response

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._enabled = request.data
        if not self._enabled:
            self._worker.discard_waiting()
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

    def _follow_publishers(self) -> None:
        """Subscribe to the topics and types that are published now."""
        with self._inputs_lock:
            if self._receives:
                self._open_inputs()

    def _status(self) -> DiagnosticStatus:
        model = self._worker.model
        captioner = model.captioner if model is not None else None
        coverage_problem = model.coverage_problem if model is not None else ""
        state = NodeState(
            name=f"{self.get_fully_qualified_name().lstrip('/')}: captions",
            lifecycle=self._lifecycle,
            enabled=self._enabled,
            failure=self._failure,
            image_timeout_s=self._values["image_timeout_s"],
            in_work_s=self._worker.in_work_s,
            work_timeout_s=self._values["work_timeout_s"],
            lacks_clock=self._worker.lacks_clock,
            input_problem=self._image_input.problem,
            topic=self._image_input.topic,
            awaited=self._image_input.awaited,
            camera=self._values["camera"],
            model=captioner.model if captioner else "",
            bundle=str(captioner.bundle.path) if captioner else "",
            engine=captioner.engine if captioner else "",
            engine_choice=captioner.engine_choice if captioner else "",
            objects_from=self._objects_from(captioner) if captioner else "",
            coverage="on" if model and model.coverage else coverage_problem or "off",
            coverage_problem=coverage_problem,
        )
        return diagnostic_status(state, self._statistics.summary())

    def _objects_from(self, captioner: Captioner) -> str:
        sources = [f"{self._detection_input.topic} ({self._detection_input.type})"] if uses_topic(self._values) else []
        if captioner.detector is not None:
            sources.append(f"{captioner.detector.path} ({captioner.detector.layout})")
        return ", else ".join(sources) or "nothing"
