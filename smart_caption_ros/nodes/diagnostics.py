"""The diagnostic statuses of the caption node and its cameras: level, one sentence, and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """What all cameras of the caption node have in common.

    Attributes:
        name: name of the node.
        lifecycle: "unconfigured", "inactive" or "active".
        enabled: whether images are captioned as they arrive.
        failure: why the last configuration failed; empty where it did not.
        in_work_s: how long the image in progress has been in work; 0 where there is none.
        work_timeout_s: time of work on one image after which the level is ERROR.
        lacks_clock: whether the node uses the time on /clock and none has arrived.
        model: name of the model; empty while unconfigured, like the next three.
        bundle: folder of its bundle.
        engine: the engine that runs it.
        engine_choice: how the engine runs it, and why this engine was chosen.
        coverage: "on", "off", or why it could not be loaded.
        coverage_problem: why coverage could not be loaded although it is on; empty where it could.
    """

    name: str
    lifecycle: str
    enabled: bool
    failure: str
    in_work_s: float
    work_timeout_s: float
    lacks_clock: bool
    model: str
    bundle: str
    engine: str
    engine_choice: str
    coverage: str
    coverage_problem: str


@dataclass(frozen=True)
class CameraState:
    """State of one camera of the caption node.

    Attributes:
        name: name of the camera.
        image_timeout_s: time without an image after which the level is ERROR.
        input_problem: what is wrong with the thread that receives images; empty where nothing is.
        topic: full name of the image topic.
        awaited: the topic or topics on which an image may arrive.
        objects_from: the detector or the detections topic; empty while unconfigured.
        summary: counts since the start, and what happened in the last seconds.
    """

    name: str
    image_timeout_s: float
    input_problem: str
    topic: str
    awaited: str
    objects_from: str
    summary: Summary


class DiagnosticsPublisher:
    """Publishes on /diagnostics periodically, in every state of the node."""

    def __init__(self, node: Node, statuses: Callable[[], list[DiagnosticStatus]], period_s: float) -> None:
        """Start to publish.

        Args:
            node: the node.
            statuses: returns the statuses of one message.
            period_s: time between two messages.
        """
        self._node = node
        self._statuses = statuses
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
        message = DiagnosticArray(status=self._statuses())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def diagnostic_statuses(node: NodeState, cameras: Sequence[CameraState]) -> list[DiagnosticStatus]:
    """Build the diagnostic statuses of the caption node.

    Args:
        node: state of the node.
        cameras: state of each camera.

    Returns:
        With one camera one status, which has the values of node and camera. With several cameras the status of the
        node, and one of each camera.
    """
    name = f"{node.name}: captions"
    if len(cameras) == 1:
        (camera,) = cameras
        conditions = [*_camera_conditions(node, camera), *_node_conditions(node, cameras)]
        return [_status(name, camera.name, conditions, {**_node_values(node), **_camera_values(camera)})]
    statuses = [_status(name, "", _node_conditions(node, cameras), _node_values(node))]
    for camera in cameras:
        conditions = [*_camera_conditions(node, camera), (DiagnosticStatus.OK, _activity(node, [camera]))]
        statuses.append(_status(f"{name} of {camera.name}", camera.name, conditions, _camera_values(camera)))
    return statuses


def _status(
    name: str, hardware_id: str, conditions: Iterable[tuple[bytes, str]], values: Mapping[str, str]
) -> DiagnosticStatus:
    """Build a status with the most severe condition, the first one of several that are equally severe."""
    level, message = max(conditions, key=lambda condition: condition[0])
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware_id,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )


def _node_values(node: NodeState) -> dict[str, str]:
    return {
        "state": node.lifecycle,
        "captioning": "on" if node.enabled else "off",
        "model": node.model,
        "bundle": node.bundle,
        "engine": node.engine,
        "engine choice": node.engine_choice,
        "coverage": node.coverage,
        "image in work for (s)": f"{node.in_work_s:.1f}",
    }


def _camera_values(camera: CameraState) -> dict[str, str]:
    summary = camera.summary
    latencies_s = [answer.latency_s for answer in summary.recent]
    work_s = [answer.work_s for answer in summary.recent]
    coverages = [each.coverage for each in summary.recent_evidence if each.coverage is not None]
    coverage_s = [each.coverage_s for each in summary.recent_evidence if each.coverage_s]
    return {
        "image topic": camera.topic,
        "images received": str(summary.received),
        "images answered": str(sum(summary.answers.values())),
        **{f"answered {name}": str(summary.answers.get(status, 0)) for status, name in STATUS_NAMES.items()},
        "images dropped for newer ones": str(summary.dropped),
        "images passed over": str(summary.passed_over),
        "images unchanged": str(summary.unchanged),
        "images lost on the way": str(summary.lost),
        "messages that are not images": str(summary.undecodable),
        "errors of receiving": str(summary.reader_errors),
        "images per second": f"{summary.received_hz:.2f}",
        "answers per second": f"{summary.answered_hz:.2f}",
        "mean latency (ms)": _mean_ms(latencies_s),
        "longest latency (ms)": f"{max(latencies_s) * 1000:.1f}" if latencies_s else "",
        "mean work (ms)": _mean_ms(work_s),
        "objects from": camera.objects_from,
        "detections received": str(summary.detections),
        "detected objects left out": str(summary.objects_left_out),
        **{f"captions with {o.value}": str(summary.captions_by_origin.get(o, 0)) for o in ObjectOrigin},
        "mean coverage": f"{sum(coverages) / len(coverages):.3f}" if coverages else "",
        "mean coverage work (ms)": _mean_ms(coverage_s),
        "coverage failures": str(summary.coverage_failures),
        "last error": summary.last_error,
    }


def _node_conditions(node: NodeState, cameras: Sequence[CameraState]) -> Iterator[tuple[bytes, str]]:
    """Yield level and sentence of each condition of the node; one at least."""
    if node.failure:
        yield DiagnosticStatus.ERROR, node.failure
    if node.in_work_s > node.work_timeout_s:
        yield DiagnosticStatus.ERROR, f"an image has been in work for {node.in_work_s:.1f} s"
    if node.lifecycle == "active":
        if node.lacks_clock:
            yield DiagnosticStatus.WARN, "use_sim_time is set, and nothing arrives on /clock: images have no age"
        if node.coverage_problem:
            yield DiagnosticStatus.WARN, node.coverage_problem
    yield DiagnosticStatus.OK, _activity(node, cameras)


def _activity(node: NodeState, cameras: Sequence[CameraState]) -> str:
    if node.lifecycle != "active":
        return node.lifecycle
    if not node.enabled:
        return "captioning is switched off"
    return f"captioning, {sum(camera.summary.answered_hz for camera in cameras):.1f} images a second"


def _camera_conditions(node: NodeState, camera: CameraState) -> Iterator[tuple[bytes, str]]:
    """Yield level and sentence of each condition of a camera, if any; none while the node is not active."""
    if node.lifecycle != "active":
        return
    summary = camera.summary
    if camera.input_problem:
        yield DiagnosticStatus.ERROR, camera.input_problem
    if errors := summary.recent_input_errors:
        yield DiagnosticStatus.ERROR, f"{len(errors)} messages of the last {WINDOW_S:g} s: {errors[-1][1]}"
    if summary.since_image_s > camera.image_timeout_s:
        yield DiagnosticStatus.ERROR, f"no image on {camera.awaited} for {summary.since_image_s:.1f} s"
    recent = Counter(answer.status for answer in summary.recent)
    if failed := recent[Caption.STATUS_ERROR]:
        reason = f"{failed} of the last {len(summary.recent)} images could not be captioned: {summary.last_error}"
        yield DiagnosticStatus.ERROR, reason
    if stale := recent[Caption.STATUS_STALE]:
        reason = next(a.message for a in reversed(summary.recent) if a.status == Caption.STATUS_STALE)
        yield DiagnosticStatus.WARN, f"{stale} of the last {len(summary.recent)} images were too old: {reason}"
    if warning := _evidence_warning(summary):
        yield DiagnosticStatus.WARN, warning


def _evidence_warning(summary: Summary) -> str:
    """Return what is wrong with objects and coverage, which does not stop the captions; empty where nothing is."""
    count = len(summary.recent_evidence)
    if errors := [each.coverage_error for each in summary.recent_evidence if each.coverage_error]:
        return f"{len(errors)} of the last {count} captions have no coverage: {errors[-1]}"
    if missing := [each.missing_reason for each in summary.recent_evidence if each.missing_reason]:
        return f"{len(missing)} of the last {count} captions have no objects: {missing[-1]}"
    return ""


def _mean_ms(seconds: Sequence[float]) -> str:
    return f"{sum(seconds) / len(seconds) * 1000:.1f}" if seconds else ""
