"""The diagnostic status of the caption node: level, one sentence, and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer

from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.evidence import ObjectOrigin
from smart_caption_ros.nodes.messages import STATUS_NAMES
from smart_caption_ros.nodes.node_statistics import WINDOW_S, Summary


@dataclass(frozen=True)
class NodeState:
    """State of the caption node.

    Attributes:
        name: name of the diagnostic status.
        lifecycle: "unconfigured", "inactive" or "active".
        enabled: whether images are captioned as they arrive.
        failure: why the last configuration failed; empty where it did not.
        image_timeout_s: time without an image after which the level is ERROR.
        in_work_s: how long the image in progress has been in work; 0 where there is none.
        work_timeout_s: time of work on one image after which the level is ERROR.
        lacks_clock: whether the node uses the time on /clock and none has arrived.
        input_problem: what is wrong with the thread that receives images; empty where nothing is.
        topic: full name of the image topic.
        awaited: the topic or topics on which an image may arrive.
        camera: name of the camera.
        model: name of the model; empty while unconfigured, like the next four.
        bundle: folder of its bundle.
        engine: the engine that runs it.
        engine_choice: how the engine runs it, and why this engine was chosen.
        objects_from: the detector or the detections topic.
        coverage: "on", "off", or why it could not be loaded.
        coverage_problem: why coverage could not be loaded although it is on; empty where it could.
    """

    name: str
    lifecycle: str
    enabled: bool
    failure: str
    image_timeout_s: float
    in_work_s: float
    work_timeout_s: float
    lacks_clock: bool
    input_problem: str
    topic: str
    awaited: str
    camera: str
    model: str
    bundle: str
    engine: str
    engine_choice: str
    objects_from: str
    coverage: str
    coverage_problem: str


class DiagnosticsPublisher:
    """Publishes a status on /diagnostics periodically, in every state of the node."""

    def __init__(self, node: Node, status: Callable[[], DiagnosticStatus], period_s: float) -> None:
        """Start to publish.

        Args:
            node: the node.
            status: returns the status to publish.
            period_s: time between two messages.
        """
        self._node = node
        self._status = status
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A group of its own, so that diagnostics wait for no other callback; steady time, so that they do not stop
        # with a simulation.
        self._group = MutuallyExclusiveCallbackGroup()
        self._clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self._create_timer(period_s)

    def change_period(self, period_s: float) -> None:
        """Publish with another period from now on."""
        self._node.destroy_timer(self._timer)
        self._timer = self._create_timer(period_s)

    def _create_timer(self, period_s: float) -> Timer:
        return self._node.create_timer(period_s, self._publish, callback_group=self._group, clock=self._clock)

    def _publish(self) -> None:
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def diagnostic_status(state: NodeState, summary: Summary) -> DiagnosticStatus:
    """Build the diagnostic status of the caption node."""
    level, message = _level(state, summary)
    answered = sum(summary.answers.values())
    latencies_s = [answer.latency_s for answer in summary.recent]
    work_s = [answer.work_s for answer in summary.recent]
    coverages = [each.coverage for each in summary.recent_evidence if each.coverage is not None]
    coverage_s = [each.coverage_s for each in summary.recent_evidence if each.coverage_s]
    values = {
        "state": state.lifecycle,
        "captioning": "on" if state.enabled else "off",
        "model": state.model,
        "bundle": state.bundle,
        "engine": state.engine,
        "engine choice": state.engine_choice,
        "image topic": state.topic,
        "images received": str(summary.received),
        "images answered": str(answered),
        **{f"answered {name}": str(summary.answers.get(status, 0)) for status, name in STATUS_NAMES.items()},
        "images dropped for newer ones": str(summary.dropped),
        "images lost on the way": str(summary.lost),
        "images passed over while off": str(summary.passed_over),
        "messages that are not images": str(summary.undecodable),
        "errors of receiving": str(summary.reader_errors),
        "images per second": f"{summary.received_hz:.2f}",
        "answers per second": f"{summary.answered_hz:.2f}",
        "mean latency (ms)": _mean_ms(latencies_s),
        "longest latency (ms)": f"{max(latencies_s) * 1000:.1f}" if latencies_s else "",
        "mean work (ms)": _mean_ms(work_s),
        "image in work for (s)": f"{state.in_work_s:.1f}",
        "objects from": state.objects_from,
        "detections received": str(summary.detections),
        "detected objects left out": str(summary.objects_left_out),
        **{f"captions with {o.value}": str(summary.captions_by_origin.get(o, 0)) for o in ObjectOrigin},
        "coverage": state.coverage,
        "mean coverage": f"{sum(coverages) / len(coverages):.3f}" if coverages else "",
        "mean coverage work (ms)": _mean_ms(coverage_s),
        "coverage failures": str(summary.coverage_failures),
        "last error": summary.last_error,
    }
    return DiagnosticStatus(
        level=level,
        name=state.name,
        message=message,
        hardware_id=state.camera,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )


def _level(state: NodeState, summary: Summary) -> tuple[bytes, str]:
    """Return the level and the sentence of the most severe condition."""
    if state.failure:
        return DiagnosticStatus.ERROR, state.failure
    if state.in_work_s > state.work_timeout_s:
        return DiagnosticStatus.ERROR, f"an image has been in work for {state.in_work_s:.1f} s"
    if state.lifecycle != "active":
        return DiagnosticStatus.OK, state.lifecycle
    if state.input_problem:
        return DiagnosticStatus.ERROR, state.input_problem
    if errors := summary.recent_input_errors:
        return DiagnosticStatus.ERROR, f"{len(errors)} messages of the last {WINDOW_S:g} s: {errors[-1][1]}"
    if summary.since_image_s > state.image_timeout_s:
        return DiagnosticStatus.ERROR, f"no image on {state.awaited} for {summary.since_image_s:.1f} s"
    recent = Counter(answer.status for answer in summary.recent)
    if failed := recent[Caption.STATUS_ERROR]:
        return (
            DiagnosticStatus.ERROR,
            f"{failed} of the last {len(summary.recent)} images could not be captioned: {summary.last_error}",
        )
    if stale := recent[Caption.STATUS_STALE]:
        reason = next(a.message for a in reversed(summary.recent) if a.status == Caption.STATUS_STALE)
        return (
            DiagnosticStatus.WARN,
            f"{stale} of the last {len(summary.recent)} images were too old: {reason}",
        )
    if state.lacks_clock:
        return DiagnosticStatus.WARN, "use_sim_time is set, and nothing arrives on /clock: images have no age"
    if warning := _evidence_warning(state, summary):
        return DiagnosticStatus.WARN, warning
    if not state.enabled:
        return DiagnosticStatus.OK, "captioning is switched off"
    return DiagnosticStatus.OK, f"captioning, {summary.answered_hz:.1f} images a second"


def _evidence_warning(state: NodeState, summary: Summary) -> str:
    """Return what is wrong with objects and coverage, which does not stop the captions; empty where nothing is."""
    count = len(summary.recent_evidence)
    if state.coverage_problem:
        return state.coverage_problem
    if errors := [each.coverage_error for each in summary.recent_evidence if each.coverage_error]:
        return f"{len(errors)} of the last {count} captions have no coverage: {errors[-1]}"
    if missing := [each.missing_reason for each in summary.recent_evidence if each.missing_reason]:
        return f"{len(missing)} of the last {count} captions have no objects: {missing[-1]}"
    return ""


def _mean_ms(seconds: Sequence[float]) -> str:
    return f"{sum(seconds) / len(seconds) * 1000:.1f}" if seconds else ""
