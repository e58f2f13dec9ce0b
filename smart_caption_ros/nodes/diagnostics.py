"""What the caption node says about itself on /diagnostics: counts, rates, latency, and if all is well."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.evidence import Evidence, Origin
from smart_caption_ros.nodes.messages import STATUS_NAMES

WINDOW_S = 5.0
"""Rates, latencies and the level follow what happened in this last stretch of time [s]."""


@dataclass(frozen=True)
class _Answer:
    at_s: float
    status: int
    message: str
    latency_s: float
    work_s: float


@dataclass(frozen=True)
class _Gathered:
    at_s: float
    origin: Origin
    missing: str  # why objects that somebody publishes did not reach the caption
    failure: str
    coverage: float | None
    coverage_s: float


@dataclass(frozen=True)
class Summary:
    """What `Statistics` knows at one moment: counts since the start, the rest of the last `WINDOW_S`."""

    received: int
    dropped: int
    lost: int
    paused: int
    answers: Mapping[int, int]
    received_hz: float
    answered_hz: float
    recent: tuple[_Answer, ...]
    since_image_s: float
    last_error: str
    detections: int
    objects_left_out: int
    captions_by_origin: Mapping[Origin, int]
    coverage_failures: int
    gathered: tuple[_Gathered, ...]


class Statistics:
    """Counts what became of the images; safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Args: clock: seconds that only go forward."""
        self._clock = clock
        self._lock = threading.Lock()
        self._received = self._dropped = self._lost = self._paused = 0
        self._answers: Counter[int] = Counter()
        self._arrivals: deque[float] = deque()
        self._recent: deque[_Answer] = deque()
        self._last_error = ""
        self._detections = self._objects_left_out = self._coverage_failures = 0
        self._origins: Counter[Origin] = Counter()
        self._gathered: deque[_Gathered] = deque()
        self._waiting_since_s = clock()
        self._started_s = clock()

    def start(self) -> None:
        """From now on images are expected: rates and the wait for an image count from here."""
        with self._lock:
            self._waiting_since_s = self._started_s = self._clock()
            self._arrivals.clear()
            self._recent.clear()
            self._gathered.clear()

    def count_received(self) -> None:
        """An image came in."""
        with self._lock:
            self._received += 1
            self._waiting_since_s = self._clock()
            self._arrivals.append(self._waiting_since_s)
            self._forget()

    def count_dropped(self) -> None:
        """An image gave way to a newer one before it was taken up."""
        with self._lock:
            self._dropped += 1

    def count_lost(self, images: int) -> None:
        """Images that never arrived, by the count of the middleware."""
        with self._lock:
            self._lost += images

    def count_paused(self) -> None:
        """An image came in while captioning was switched off."""
        with self._lock:
            self._paused += 1

    def count_answer(self, status: int, message: str, *, latency_s: float, work_s: float) -> None:
        """An image was answered.

        Args:
            status: the answer's status.
            message: the answer's status message.
            latency_s: from the image's stamp to the answer.
            work_s: from the start of the work to the answer.
        """
        with self._lock:
            self._answers[status] += 1
            if status == Caption.STATUS_ERROR:
                self._last_error = message
            self._recent.append(_Answer(self._clock(), status, message, latency_s, work_s))
            self._forget()

    def count_detections(self, left_out: int) -> None:
        """A message came on the detections topic.

        Args:
            left_out: how many of its objects are none: no known class, no score, no area.
        """
        with self._lock:
            self._detections += 1
            self._objects_left_out += left_out

    def count_evidence(self, evidence: Evidence, *, detections_expected: bool) -> None:
        """A caption was compared with its objects.

        Args:
            evidence: what came of it.
            detections_expected: whether somebody publishes detections, so that it is worth saying where none fit.
        """
        grounding = evidence.grounding
        with self._lock:
            self._origins[evidence.origin] += 1
            self._coverage_failures += bool(evidence.failure)
            self._gathered.append(
                _Gathered(
                    self._clock(),
                    evidence.origin,
                    evidence.missing if detections_expected else "",
                    evidence.failure,
                    grounding.coverage if grounding else None,
                    grounding.time_s if grounding else 0.0,
                )
            )
            self._forget()

    def summary(self) -> Summary:
        """What happened so far."""
        with self._lock:
            self._forget()
            now = self._clock()
            window = max(min(WINDOW_S, now - self._started_s), 1e-9)
            return Summary(
                received=self._received,
                dropped=self._dropped,
                lost=self._lost,
                paused=self._paused,
                answers=dict(self._answers),
                received_hz=len(self._arrivals) / window,
                answered_hz=len(self._recent) / window,
                recent=tuple(self._recent),
                since_image_s=now - self._waiting_since_s,
                last_error=self._last_error,
                detections=self._detections,
                objects_left_out=self._objects_left_out,
                captions_by_origin=dict(self._origins),
                coverage_failures=self._coverage_failures,
                gathered=tuple(self._gathered),
            )

    def _forget(self) -> None:
        horizon = self._clock() - WINDOW_S
        while self._arrivals and self._arrivals[0] < horizon:
            self._arrivals.popleft()
        for queue in (self._recent, self._gathered):
            while queue and queue[0].at_s < horizon:
                queue.popleft()


@dataclass(frozen=True)
class NodeState:
    """What the node is, for its diagnostics.

    Attributes:
        name: the name of the diagnostic status.
        lifecycle: "unconfigured", "inactive" or "active".
        enabled: whether images are captioned as they arrive.
        failure: why the engine could not be loaded; empty when it could, or was never asked for.
        image_timeout_s: how long no image is fine.
        topic: the image topic, with its namespace.
        camera: the camera's name.
        model, bundle, engine: the model's name, its bundle's folder, what runs it; empty while unconfigured.
        engine_choice: how it runs it, and why this engine and no other; empty while unconfigured.
        objects_from: the own detector or the detections topic; empty while unconfigured.
        coverage: "on", "off", or why it is not on.
        coverage_problem: why coverage could not be loaded although it was asked for; empty where it could.
    """

    name: str
    lifecycle: str
    enabled: bool
    failure: str
    image_timeout_s: float
    topic: str
    camera: str
    model: str
    bundle: str
    engine: str
    engine_choice: str
    objects_from: str
    coverage: str
    coverage_problem: str


def diagnostic_status(state: NodeState, summary: Summary) -> DiagnosticStatus:
    """The one status of the caption node: level, a sentence for people, and the numbers."""
    level, message = _level(state, summary)
    answered = sum(summary.answers.values())
    latencies_s = [answer.latency_s for answer in summary.recent]
    work_s = [answer.work_s for answer in summary.recent]
    coverages = [each.coverage for each in summary.gathered if each.coverage is not None]
    coverage_s = [each.coverage_s for each in summary.gathered if each.coverage_s]
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
        "images passed over while off": str(summary.paused),
        "images per second": f"{summary.received_hz:.2f}",
        "answers per second": f"{summary.answered_hz:.2f}",
        "mean latency (ms)": _mean_ms(latencies_s),
        "longest latency (ms)": f"{max(latencies_s) * 1000:.1f}" if latencies_s else "",
        "mean work (ms)": _mean_ms(work_s),
        "objects from": state.objects_from,
        "detections received": str(summary.detections),
        "detected objects left out": str(summary.objects_left_out),
        **{f"captions with {o.value}": str(summary.captions_by_origin.get(o, 0)) for o in Origin},
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
    if state.failure:
        return DiagnosticStatus.ERROR, state.failure
    if state.lifecycle != "active":
        return DiagnosticStatus.OK, state.lifecycle
    if summary.since_image_s > state.image_timeout_s:
        return DiagnosticStatus.STALE, f"no image on {state.topic} for {summary.since_image_s:.1f} s"
    recent = Counter(answer.status for answer in summary.recent)
    if errors := recent[Caption.STATUS_ERROR]:
        return (
            DiagnosticStatus.ERROR,
            f"{errors} of the last {len(summary.recent)} images could not be captioned: {summary.last_error}",
        )
    if stale := recent[Caption.STATUS_STALE]:
        reason = next(a.message for a in reversed(summary.recent) if a.status == Caption.STATUS_STALE)
        return (
            DiagnosticStatus.WARN,
            f"{stale} of the last {len(summary.recent)} images were too old: {reason}",
        )
    if warning := _evidence_warning(state, summary):
        return DiagnosticStatus.WARN, warning
    if not state.enabled:
        return DiagnosticStatus.OK, "captioning is switched off"
    return DiagnosticStatus.OK, f"captioning, {summary.answered_hz:.1f} images a second"


def _evidence_warning(state: NodeState, summary: Summary) -> str:
    """What is wrong with objects and coverage: captions flow all the same."""
    count = len(summary.gathered)
    if state.coverage_problem:
        return state.coverage_problem
    if failures := [each.failure for each in summary.gathered if each.failure]:
        return f"{len(failures)} of the last {count} captions have no coverage: {failures[-1]}"
    if missing := [each.missing for each in summary.gathered if each.missing]:
        return f"{len(missing)} of the last {count} captions have no objects: {missing[-1]}"
    return ""


def _mean_ms(seconds: list[float]) -> str:
    return f"{sum(seconds) / len(seconds) * 1000:.1f}" if seconds else ""
