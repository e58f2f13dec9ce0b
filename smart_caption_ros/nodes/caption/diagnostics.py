"""The diagnostic statuses of the caption node and its cameras: level, one sentence, and values."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from smart_caption_ros.caption_messages import CAPTION_STATUSES
from smart_caption_ros.files import FAST_DDS_PROFILE, PROFILE_VARIABLE, config_file
from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.caption.evidence import ObjectOrigin
from smart_caption_ros.nodes.caption.model import Model
from smart_caption_ros.nodes.caption.statistics import WINDOW_S, Count, Summary
from smart_caption_ros.nodes.caption.worker import WORK_TIMEOUT_S

IMAGE_TOPIC = "image topic"
"""Key of the value that names the topic of a camera's images."""

IMAGE_TIMEOUT_S = 5.0
"""Time without an image after which the level is ERROR, seconds."""
LOST_SHARE = 0.3
"""Share of the images that may be lost on the way before the level is WARN; a busy machine loses some."""

_PERCENTS = (50, 95, 99)


@dataclass(frozen=True)
class NodeState:
    """State that the cameras of the caption node share.

    Attributes:
        lifecycle: "unconfigured", "inactive" or "active".
        failure: why the last configuration failed; empty where it did not.
        in_work_s: how long the image in progress has been in work; 0 where there is none.
        lacks_clock: whether the node uses the time on /clock and none has arrived.
        memory_mb: resident memory of the process in units of 1e6 bytes; None where it is unknown.
        requests_refused: number of requests for a caption that were refused because too many waited.
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


@dataclass(frozen=True)
class CameraState:
    """State of one camera of the caption node.

    Attributes:
        image_problem: why images cannot arrive there; empty where no reason is known.
        detection_problem: why detections cannot be used; empty where no reason is known.
        objects_from: the detector or the detections topic; empty while unconfigured.
    """

    name: str
    is_resting: bool
    topic: str
    image_topics: str
    image_problem: str
    detection_problem: str
    objects_from: str
    summary: Summary


def diagnostic_statuses(node: NodeState, cameras: Sequence[CameraState]) -> list[DiagnosticStatus]:
    """Build the diagnostic statuses of the caption node.

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
    model, captioner = node.model, node.model.captioner if node.model is not None else None
    return {
        "state": node.lifecycle,
        "captioning": "on" if node.enabled else "off",
        "model": captioner.model if captioner else "",
        "bundle": str(captioner.bundle.path) if captioner else "",
        "engine": captioner.engine if captioner else "",
        "engine choice": captioner.engine_choice if captioner else "",
        "engine fall-backs": "; ".join(captioner.engine_fallbacks) if captioner else "",
        "resident memory (MB)": "" if node.memory_mb is None else f"{node.memory_mb:.1f}",
        "requests answered": str(node.requests_answered),
        "requests refused as busy": str(node.requests_refused),
        "coverage": "off" if model is None else "on" if model.coverage else model.coverage_problem or "off",
        "image in work for (s)": f"{node.in_work_s:.1f}",
    }


def _camera_values(camera: CameraState) -> dict[str, str]:
    summary = camera.summary
    groundings = [evidence.grounding for evidence in summary.recent_evidence if evidence.grounding is not None]
    coverages = [grounding.coverage for grounding in groundings if grounding.coverage is not None]
    origins = {f"captions with {origin.value}": summary.captions_by_origin[origin] for origin in ObjectOrigin}
    values = {
        IMAGE_TOPIC: camera.topic,
        "resting": "yes" if camera.is_resting else "no",
        **{count.value: summary.counts[count] for count in Count},
        "images answered": sum(summary.answers.values()),
        **{f"answered {status.value}": summary.answers[number] for number, status in CAPTION_STATUSES.items()},
        "images per second": f"{summary.received_hz:.2f}",
        "answers per second": f"{summary.answered_hz:.2f}",
        **{f"age p{percent} (ms)": age_ms for percent, age_ms in _percentiles_ms(summary.ages_s).items()},
        "mean work (ms)": _mean_ms([answer.work_s for answer in summary.recent]),
        "objects from": camera.objects_from,
        **origins,
        "mean coverage": f"{sum(coverages) / len(coverages):.3f}" if coverages else "",
        "mean coverage work (ms)": _mean_ms([grounding.time_s for grounding in groundings]),
        "last error": summary.last_error,
    }
    return {key: str(value) for key, value in values.items()}


def _node_conditions(node: NodeState, cameras: Sequence[CameraState]) -> Iterator[tuple[bytes, str]]:
    """Yield level and sentence of each condition of the node; one at least."""
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


def _activity(node: NodeState, cameras: Sequence[CameraState]) -> str:
    if node.lifecycle != "active":
        return node.lifecycle
    if not node.enabled:
        return "captioning is switched off"
    if all(camera.is_resting for camera in cameras):
        return "resting, because nobody subscribes to the captions"
    return f"captioning, {sum(camera.summary.answered_hz for camera in cameras):.1f} images a second"


def _camera_conditions(node: NodeState, camera: CameraState) -> Iterator[tuple[bytes, str]]:
    """Yield level and sentence of each condition of a camera, if any; none while it rests or the node is not active."""
    if node.lifecycle != "active" or camera.is_resting:
        return
    summary = camera.summary
    if summary.since_image_s > IMAGE_TIMEOUT_S:
        reason = f": {camera.image_problem}" if camera.image_problem else ""
        yield DiagnosticStatus.ERROR, f"no image on {camera.image_topics} for {summary.since_image_s:.1f} s{reason}"
    sent = summary.recently_received + summary.recently_lost
    if summary.recently_lost > max(1, LOST_SHARE * sent):
        yield (
            DiagnosticStatus.WARN,
            f"{summary.recently_lost} of the last {sent} images were lost on the way to this process: start the "
            f"camera's process with {PROFILE_VARIABLE}={config_file(FAST_DDS_PROFILE)}",
        )
    recent = Counter(answer.status for answer in summary.recent)
    if failed := recent[Caption.STATUS_ERROR]:
        reason = f"{failed} of the last {len(summary.recent)} images could not be captioned: {summary.last_error}"
        yield DiagnosticStatus.ERROR, reason
    if stale := recent[Caption.STATUS_STALE]:
        reason = next(a.reason for a in reversed(summary.recent) if a.status == Caption.STATUS_STALE)
        yield DiagnosticStatus.WARN, f"{stale} of the last {len(summary.recent)} images were too old: {reason}"
    if warning := _evidence_warning(camera):
        yield DiagnosticStatus.WARN, warning


def _evidence_warning(camera: CameraState) -> str:
    """Return what is wrong with objects and coverage, which does not stop the captions; empty where nothing is."""
    summary = camera.summary
    count = len(summary.recent_evidence)
    if errors := [evidence.coverage_error for evidence in summary.recent_evidence if evidence.coverage_error]:
        return f"{len(errors)} of the last {count} captions have no coverage: {errors[-1]}"
    if camera.detection_problem:
        return camera.detection_problem
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
