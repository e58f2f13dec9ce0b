"""Build the diagnostic statuses of the caption node and its cameras: level, one sentence, and values."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.nodes.caption.camera import Camera
from smart_caption_ros.nodes.caption.evidence import ObjectOrigin
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.statistics import WINDOW_S, Count, Summary
from smart_caption_ros.nodes.caption.worker import WORK_TIMEOUT_S
from smart_caption_ros.nodes.diagnostics_publisher import diagnostic_status
from smart_caption_ros.record import CaptionStatus

IMAGE_TOPIC = "image topic"
"""Key of the value that names the image topic of a camera."""

IMAGE_TIMEOUT_S = 5.0
"""Time without an image after which the level is ERROR, seconds."""
LOST_SHARE = 0.3
"""Share of lost images above which the level is WARN; a busy machine always loses some."""

_PERCENTS = (50, 95, 99)


@dataclass(frozen=True)
class NodeState:
    """State that the cameras of the caption node share.

    Attributes:
        lifecycle: "unconfigured", "inactive" or "active".
        failure: why the last configuration failed; empty if it did not.
        in_work_s: time for which the image in progress has been in work, seconds; 0 if there is none.
        lacks_clock: whether the node uses the time on /clock and none has arrived.
        memory_mb: resident memory of the process in units of 1e6 bytes; None if it is unknown.
        requests_refused: number of requests for a caption that were refused because too many were waiting.
    """

    name: str
    lifecycle: str
    enabled: bool
    failure: str
    in_work_s: float
    lacks_clock: bool
    model: Model | None
    nodes_of_this_name: int
    memory_mb: float | None
    requests_answered: int
    requests_refused: int


def diagnostic_statuses(node: NodeState, cameras: Sequence[Camera]) -> list[DiagnosticStatus]:
    """Build the diagnostic statuses of the caption node.

    Returns:
        With one camera, one status with the values of the node and of the camera; with several cameras, one status of
        the node and one of each camera.
    """
    name = f"{node.name}: captions"
    summaries = {camera: camera.publisher.statistics.summary() for camera in cameras}
    if len(cameras) == 1:
        (camera,) = cameras
        conditions = [*_camera_conditions(node, camera, summaries[camera]), *_node_conditions(node, summaries)]
        values = {**_node_values(node), **_camera_values(node, camera, summaries[camera])}
        return [diagnostic_status(name, conditions, values, camera.name)]
    statuses = [diagnostic_status(name, _node_conditions(node, summaries), _node_values(node))]
    for camera, summary in summaries.items():
        conditions = [
            *_camera_conditions(node, camera, summary),
            (DiagnosticStatus.OK, _activity(node, {camera: summary})),
        ]
        values = _camera_values(node, camera, summary)
        statuses.append(diagnostic_status(f"{name} of {camera.name}", conditions, values, camera.name))
    return statuses


def _node_values(node: NodeState) -> dict[str, object]:
    model, captioner = node.model, node.model.captioner if node.model is not None else None
    return {
        "state": node.lifecycle,
        "captioning": "on" if node.enabled else "off",
        "model": captioner.model if captioner else "",
        "bundle": captioner.bundle.path if captioner else "",
        "engine": captioner.engine if captioner else "",
        "engine choice": captioner.engine_choice if captioner else "",
        "engine fall-backs": "; ".join(captioner.engine_fallbacks) if captioner else "",
        "resident memory (MB)": "" if node.memory_mb is None else f"{node.memory_mb:.1f}",
        "requests answered": node.requests_answered,
        "requests refused as busy": node.requests_refused,
        "coverage": "off" if model is None else "on" if model.coverage else model.coverage_problem or "off",
        "image in work for (s)": f"{node.in_work_s:.1f}",
    }


def _camera_values(node: NodeState, camera: Camera, summary: Summary) -> dict[str, object]:
    groundings = [evidence.grounding for evidence in summary.recent_evidence if evidence.grounding is not None]
    coverages = [grounding.coverage for grounding in groundings if grounding.coverage is not None]
    answers = {status: summary.counts[status] for status in CaptionStatus}
    return {
        IMAGE_TOPIC: camera.image_input.topic,
        "resting": "yes" if camera.is_resting else "no",
        **{count.value: summary.counts[count] for count in Count},
        "images answered": sum(answers.values()),
        **{f"answered {status.value}": number for status, number in answers.items()},
        "images per second": f"{summary.received_hz:.2f}",
        "answers per second": f"{summary.answered_hz:.2f}",
        **{f"age p{percent} (ms)": age_ms for percent, age_ms in _percentiles_ms(summary.ages_s).items()},
        "mean work (ms)": _mean_ms([answer.work_s for answer in summary.recent]),
        "objects from": camera.object_sources(node.model) if node.model is not None else "",
        **{f"captions with {origin.value}": summary.counts[origin] for origin in ObjectOrigin},
        "mean coverage": f"{sum(coverages) / len(coverages):.3f}" if coverages else "",
        "mean coverage work (ms)": _mean_ms([grounding.time_s for grounding in groundings]),
        "last error": summary.last_error,
    }


def _node_conditions(node: NodeState, cameras: Mapping[Camera, Summary]) -> Iterator[tuple[bytes, str]]:
    """Yield level and sentence of each condition of the node; at least one."""
    if node.failure:
        yield DiagnosticStatus.ERROR, node.failure
    if node.in_work_s > WORK_TIMEOUT_S:
        yield DiagnosticStatus.ERROR, f"an image has been in work for {node.in_work_s:.1f} s"
    if node.nodes_of_this_name > 1:
        yield (
            DiagnosticStatus.WARN,
            f"{node.nodes_of_this_name} nodes have the name /{node.name}, and share topics, services and parameters: "
            "start each with a name of its own (-r __node:=NAME) or in a namespace",
        )
    if node.lifecycle == "active" and node.model is not None:
        captioner = node.model.captioner
        if captioner.engine_fallbacks:
            reasons = "; ".join(captioner.engine_fallbacks)
            yield DiagnosticStatus.WARN, f"captions come from {captioner.engine}: {reasons}"
        if node.lacks_clock:
            yield DiagnosticStatus.WARN, "use_sim_time is set, and nothing arrives on /clock: images have no age"
        if node.model.coverage_problem:
            yield DiagnosticStatus.WARN, node.model.coverage_problem
    yield DiagnosticStatus.OK, _activity(node, cameras)


def _activity(node: NodeState, cameras: Mapping[Camera, Summary]) -> str:
    if node.lifecycle != "active":
        return node.lifecycle
    if not node.enabled:
        return "captioning is switched off"
    if all(camera.is_resting for camera in cameras):
        return "resting, because nobody subscribes to the captions"
    return f"captioning, {sum(summary.answered_hz for summary in cameras.values()):.1f} images a second"


def _camera_conditions(node: NodeState, camera: Camera, summary: Summary) -> Iterator[tuple[bytes, str]]:
    """Yield level and sentence of each condition of a camera; none while it rests or the node is not active."""
    if node.lifecycle != "active" or camera.is_resting:
        return
    images = camera.image_input
    if summary.since_image_s > IMAGE_TIMEOUT_S:
        reason = f": {problem}" if (problem := images.problem) else ""
        yield DiagnosticStatus.ERROR, f"no image on {images.image_topics} for {summary.since_image_s:.1f} s{reason}"
    lost = sum(summary.recently_lost)
    sent = len(summary.recently_lost) + lost
    if lost > max(1, LOST_SHARE * sent):
        yield (
            DiagnosticStatus.WARN,
            f"{lost} of the last {sent} images were lost on the way to this process: start the "
            f"camera's process with {PROFILE_VARIABLE}={config_file(FAST_DDS_PROFILE)}",
        )
    recent = Counter(answer.status for answer in summary.recent)
    if failed := recent[CaptionStatus.ERROR]:
        reason = f"{failed} of the last {len(summary.recent)} images could not be captioned: {summary.last_error}"
        yield DiagnosticStatus.ERROR, reason
    if stale := recent[CaptionStatus.STALE]:
        reason = next(a.reason for a in reversed(summary.recent) if a.status is CaptionStatus.STALE)
        yield DiagnosticStatus.WARN, f"{stale} of the last {len(summary.recent)} images were too old: {reason}"
    if warning := _evidence_warning(camera, summary):
        yield DiagnosticStatus.WARN, warning


def _evidence_warning(camera: Camera, summary: Summary) -> str:
    """Return a problem with objects or coverage, which does not stop the captions; empty if there is none."""
    count = len(summary.recent_evidence)
    if errors := [evidence.coverage_error for evidence in summary.recent_evidence if evidence.coverage_error]:
        return f"{len(errors)} of the last {count} captions have no coverage: {errors[-1]}"
    if problem := camera.detection_input.problem:
        return problem
    if missing := [evidence for evidence in summary.recent_evidence if evidence.missing_reason]:
        have = "no objects"
        if missing[-1].origin is not ObjectOrigin.NONE:
            have = "no detections, and objects of the node's own detector instead"
        return (
            f"{len(missing)} of the last {count} captions have {have}: {missing[-1].missing_reason}; "
            f"{len(summary.recent_detections)} detections arrived in the last {WINDOW_S:g} s"
        )
    if replaced := sum(summary.recent_detections):
        return (
            f"{replaced} detections of the last {WINDOW_S:g} s replaced others with the same stamp and frame: let one "
            "detector publish for a camera"
        )
    return ""


def _percentiles_ms(seconds: Sequence[float]) -> dict[int, str]:
    if not seconds:
        return dict.fromkeys(_PERCENTS, "")
    percentiles = np.percentile(seconds, _PERCENTS)
    return {percent: f"{1e3 * value:.1f}" for percent, value in zip(_PERCENTS, percentiles, strict=True)}


def _mean_ms(seconds: Sequence[float]) -> str:
    return f"{sum(seconds) / len(seconds) * 1000:.1f}" if seconds else ""
