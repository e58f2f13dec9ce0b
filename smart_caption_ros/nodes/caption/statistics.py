"""Statistics of one camera of the caption node: counts since the start, and events of the last seconds."""

import enum
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from smart_caption_ros.nodes.caption.evidence import Evidence, ObjectOrigin
from smart_caption_ros.record import CaptionStatus
from smart_caption_ros.time_window import TimeWindow

WINDOW_S = 5.0
"""Time window of rates, latencies and levels, seconds."""

AGE_WINDOW_S = 60.0
"""Time window of ages, seconds: long enough for a slow camera to have a 99th percentile."""


class Count(enum.Enum):
    """Counts since the start; the values are the keys on /diagnostics."""

    RECEIVED = "images received"
    DROPPED = "images dropped for newer ones"
    PASSED_OVER = "images passed over"
    """Not captioned, because captioning is off or only on request, or because of the maximum rate."""
    UNCHANGED = "images unchanged"
    """Not captioned, because they do not differ from the last captioned image."""
    RESTS = "times at rest"
    """How often a lazy camera was unsubscribed, because nobody subscribed to its captions."""
    LOST = "images lost on the way"
    """Images that did not reach this node: their sequence numbers are missing."""
    DETECTIONS = "detections received"
    DETECTIONS_REPLACED = "detections replaced by others of their image"
    OBJECTS_LEFT_OUT = "detected objects left out"
    COVERAGE_FAILURES = "coverage failures"


@dataclass(frozen=True)
class RecentAnswer:
    """An answer within the time window."""

    status: CaptionStatus
    reason: str
    work_s: float


@dataclass(frozen=True)
class Summary:
    """Snapshot of :class:`Statistics`: totals since the start, and events of the last :data:`WINDOW_S` seconds."""

    counts: Counter[Count | CaptionStatus | ObjectOrigin]
    """Counts of images, of answers by status, and of captions by the origin of their objects."""
    received_hz: float
    answered_hz: float
    recently_lost: tuple[int, ...]
    """For each received image, the number of images lost immediately before it."""
    recent: tuple[RecentAnswer, ...]
    recent_evidence: tuple[Evidence, ...]
    recent_detections: tuple[bool, ...]
    """For each message on the detections topic, whether it replaced another message of the same image."""
    ages_s: tuple[float, ...]
    """Latencies of the answers of the last :data:`AGE_WINDOW_S` seconds."""
    since_image_s: float
    last_error: str


class Statistics:
    """Counts images, answers and detections; thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[Count | CaptionStatus | ObjectOrigin] = Counter()
        self._arrivals: TimeWindow[int] = TimeWindow(WINDOW_S)  # number of images lost before each
        self._recent: TimeWindow[RecentAnswer] = TimeWindow(WINDOW_S)
        self._recent_evidence: TimeWindow[Evidence] = TimeWindow(WINDOW_S)
        self._recent_detections: TimeWindow[bool] = TimeWindow(WINDOW_S)
        self._ages_s: TimeWindow[float] = TimeWindow(AGE_WINDOW_S)
        self._last_error = ""
        self._waiting_since_s = self._started_s = clock()

    def restart_windows(self) -> None:
        """Restart the time windows and the wait for an image; totals are kept. Called at activation."""
        with self._lock:
            self._waiting_since_s = self._started_s = self._clock()
            self._arrivals.clear()
            self._recent.clear()
            self._recent_evidence.clear()
            self._recent_detections.clear()
            self._ages_s.clear()

    def count(self, what: Count, number: int = 1) -> None:
        """Add to a count that no other method updates."""
        with self._lock:
            self._counts[what] += number

    def count_received(self, lost: int = 0) -> None:
        """Count a received image, and the images lost since the one before it."""
        with self._lock:
            self._counts[Count.RECEIVED] += 1
            self._counts[Count.LOST] += lost
            self._waiting_since_s = self._clock()
            self._arrivals.add(self._waiting_since_s, lost)

    def count_answer(self, status: CaptionStatus, reason: str, *, latency_s: float, work_s: float) -> None:
        """Count an answer.

        Args:
            latency_s: time from the stamp of the image to the answer.
            work_s: time from the start of the work to the answer.
        """
        with self._lock:
            self._counts[status] += 1
            if status is CaptionStatus.ERROR:
                self._last_error = reason
            self._recent.add(self._clock(), RecentAnswer(status, reason, work_s))
            self._ages_s.add(self._clock(), latency_s)

    def count_detections(self, left_out: int, *, replaces: bool) -> None:
        """Count a message of the detections topic.

        Args:
            left_out: number of its elements that cannot be used as objects.
            replaces: whether it replaced another message of the same image.
        """
        with self._lock:
            self._counts[Count.DETECTIONS] += 1
            self._counts[Count.DETECTIONS_REPLACED] += replaces
            self._counts[Count.OBJECTS_LEFT_OUT] += left_out
            self._recent_detections.add(self._clock(), replaces)

    def count_evidence(self, evidence: Evidence) -> None:
        with self._lock:
            self._counts[evidence.origin] += 1
            self._counts[Count.COVERAGE_FAILURES] += bool(evidence.coverage_error)
            self._recent_evidence.add(self._clock(), evidence)

    def summary(self) -> Summary:
        with self._lock:
            now = self._clock()
            arrivals, recent = self._arrivals.items(now), self._recent.items(now)
            window_s = max(min(WINDOW_S, now - self._started_s), 1e-9)
            return Summary(
                counts=self._counts.copy(),
                received_hz=len(arrivals) / window_s,
                answered_hz=len(recent) / window_s,
                recently_lost=arrivals,
                recent=recent,
                recent_evidence=self._recent_evidence.items(now),
                recent_detections=self._recent_detections.items(now),
                ages_s=self._ages_s.items(now),
                since_image_s=now - self._waiting_since_s,
                last_error=self._last_error,
            )
