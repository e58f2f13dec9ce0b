"""Statistics of one camera of the caption node: counts since the start, and what happened in the last seconds."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smart_caption_ros.msg import Caption
from smart_caption_ros.nodes.evidence import Evidence, ObjectOrigin
from smart_caption_ros.time_window import TimeWindow

WINDOW_S = 5.0
"""Length of the time window of rates, latencies and levels in seconds."""

AGE_WINDOW_S = 60.0
"""Length of the time window of ages in seconds: long enough for a slow camera to have a 99th percentile."""

_MAX_INPUT_ERRORS = 1000  # a stranger may send any number


@dataclass(frozen=True)
class RecentAnswer:
    """An answer within the time window."""

    status: int
    message: str
    latency_s: float
    work_s: float


@dataclass(frozen=True)
class RecentEvidence:
    """The evidence of a caption within the time window."""

    origin: ObjectOrigin
    missing_reason: str
    """Why no detections belong to the image although somebody publishes detections; else empty."""
    coverage_error: str
    coverage: float | None
    coverage_s: float


@dataclass(frozen=True)
class Summary:
    """Snapshot of :class:`Statistics`: totals since the start, and what happened in the last :data:`WINDOW_S`."""

    received: int
    dropped: int
    lost: int
    passed_over: int
    unchanged: int
    undecodable: int
    reader_errors: int
    recent_input_errors: tuple[str, ...]
    """Reason of each message that could not be decoded, and of each error of the receiving thread."""
    answers: Mapping[int, int]
    """Number of answers by status."""
    received_hz: float
    answered_hz: float
    recent: tuple[RecentAnswer, ...]
    ages_s: tuple[float, ...]
    """Latencies of the answers of the last :data:`AGE_WINDOW_S`."""
    since_image_s: float
    last_error: str
    detections: int
    objects_left_out: int
    captions_by_origin: Mapping[ObjectOrigin, int]
    coverage_failures: int
    recent_evidence: tuple[RecentEvidence, ...]


class Statistics:
    """Counts images, answers and detections; thread-safe.

    Every image that is received is answered, dropped, passed over or unchanged: once none waits and none is in work,
    the counts add up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start all counts at zero.

        Args:
            clock: monotonic clock in seconds.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._received = self._dropped = self._lost = self._passed_over = self._unchanged = 0
        self._undecodable = self._reader_errors = 0
        self._recent_input_errors: TimeWindow[str] = TimeWindow(WINDOW_S, _MAX_INPUT_ERRORS)
        self._answers: Counter[int] = Counter()
        self._arrivals: TimeWindow[None] = TimeWindow(WINDOW_S)
        self._recent: TimeWindow[RecentAnswer] = TimeWindow(WINDOW_S)
        self._ages_s: TimeWindow[float] = TimeWindow(AGE_WINDOW_S)
        self._last_error = ""
        self._detections = self._objects_left_out = self._coverage_failures = 0
        self._origins: Counter[ObjectOrigin] = Counter()
        self._recent_evidence: TimeWindow[RecentEvidence] = TimeWindow(WINDOW_S)
        self._waiting_since_s = clock()
        self._started_s = clock()

    def restart_window(self) -> None:
        """Restart the time window and the wait for an image; totals are kept. Called at activation."""
        with self._lock:
            self._waiting_since_s = self._started_s = self._clock()
            for window in (
                self._arrivals,
                self._recent,
                self._ages_s,
                self._recent_evidence,
                self._recent_input_errors,
            ):
                window.clear()

    def count_received(self) -> None:
        """Count an image that arrived."""
        with self._lock:
            self._received += 1
            self._waiting_since_s = self._clock()
            self._arrivals.add(self._waiting_since_s, None)

    def count_dropped(self) -> None:
        """Count an image that was replaced by a newer one before its turn."""
        with self._lock:
            self._dropped += 1

    def count_lost(self, images: int) -> None:
        """Count images that the middleware reports as lost."""
        with self._lock:
            self._lost += images

    def count_passed_over(self, images: int) -> None:
        """Count images that are not captioned: while captioning is off or on request, or above the maximum rate."""
        with self._lock:
            self._passed_over += images

    def count_unchanged(self) -> None:
        """Count an image that is not captioned because it does not differ from the last one that was."""
        with self._lock:
            self._unchanged += 1

    def count_undecodable(self, reason: str) -> None:
        """Count a message on the image topic that could not be decoded; it does not count as received."""
        with self._lock:
            self._undecodable += 1
            self._add_input_error(reason)

    def count_reader_error(self, reason: str) -> None:
        """Count an error of the thread that receives images."""
        with self._lock:
            self._reader_errors += 1
            self._add_input_error(reason)

    def count_answer(self, status: int, message: str, *, latency_s: float, work_s: float) -> None:
        """Count an answer.

        Args:
            status: status of the answer.
            message: status message of the answer.
            latency_s: time from the stamp of the image to the answer.
            work_s: time from the start of the work to the answer.
        """
        with self._lock:
            self._answers[status] += 1
            if status == Caption.STATUS_ERROR:
                self._last_error = message
            self._recent.add(self._clock(), RecentAnswer(status, message, latency_s, work_s))
            self._ages_s.add(self._clock(), latency_s)

    def count_detections(self, left_out: int) -> None:
        """Count a message of the detections topic.

        Args:
            left_out: number of its elements that are not usable as objects.
        """
        with self._lock:
            self._detections += 1
            self._objects_left_out += left_out

    def count_evidence(self, evidence: Evidence, *, detections_expected: bool) -> None:
        """Count the evidence of a caption.

        Args:
            evidence: the evidence.
            detections_expected: whether the detections topic has a publisher, so that missing detections are reported.
        """
        grounding = evidence.grounding
        with self._lock:
            self._origins[evidence.origin] += 1
            self._coverage_failures += bool(evidence.coverage_error)
            self._recent_evidence.add(
                self._clock(),
                RecentEvidence(
                    evidence.origin,
                    evidence.missing_reason if detections_expected else "",
                    evidence.coverage_error,
                    grounding.coverage if grounding else None,
                    grounding.time_s if grounding else 0.0,
                ),
            )

    def summary(self) -> Summary:
        """Return a snapshot."""
        with self._lock:
            now = self._clock()
            arrivals, recent = self._arrivals.items(now), self._recent.items(now)
            window = max(min(WINDOW_S, now - self._started_s), 1e-9)
            return Summary(
                received=self._received,
                dropped=self._dropped,
                lost=self._lost,
                passed_over=self._passed_over,
                unchanged=self._unchanged,
                undecodable=self._undecodable,
                reader_errors=self._reader_errors,
                recent_input_errors=self._recent_input_errors.items(now),
                answers=dict(self._answers),
                received_hz=len(arrivals) / window,
                answered_hz=len(recent) / window,
                recent=recent,
                ages_s=self._ages_s.items(now),
                since_image_s=now - self._waiting_since_s,
                last_error=self._last_error,
                detections=self._detections,
                objects_left_out=self._objects_left_out,
                captions_by_origin=dict(self._origins),
                coverage_failures=self._coverage_failures,
                recent_evidence=self._recent_evidence.items(now),
            )

    def _add_input_error(self, reason: str) -> None:
        self._last_error = reason
        self._recent_input_errors.add(self._clock(), reason)
