"""Counts, rates and ages of the captions of one camera."""

from __future__ import annotations

import enum
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from smart_caption_ros.live.live_caption import CaptionStatus, LiveCaption

WINDOW_S = 30.0
"""Rates and ages are those of the captions of the last seconds, so many."""

_MAX_RECENT = 4096


class Health(enum.Enum):
    """What the diagnostics of a camera say."""

    UNKNOWN = "unknown"
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class CameraSummary:
    """A camera at one moment.

    Attributes:
        camera: name, as :attr:`LiveCaption.camera`.
        source: full name of the topic, or the source as the user named it.
        is_online: whether captions can come: the topic has a publisher, the source has not ended.
        captions: answers received, of any status.
        by_status: the same by status; statuses that did not occur are missing.
        dropped: images that newer ones replaced before they were captioned.
        lost: captions that the consumer of the feed took too late.
        rate_hz: answers a second in the last :data:`WINDOW_S` seconds.
        age_p50_s: median age of those answers, see :attr:`LiveCaption.age_s`; None without any.
        age_p95_s: their 95th percentile.
        last_received_monotonic_s: when the last one was received, by :func:`time.monotonic`; None before the first.
        health: what the diagnostics say.
        health_message: their sentence.
    """

    camera: str
    source: str
    is_online: bool
    captions: int
    by_status: Mapping[CaptionStatus, int]
    dropped: int
    lost: int
    rate_hz: float
    age_p50_s: float | None
    age_p95_s: float | None
    last_received_monotonic_s: float | None
    health: Health = Health.UNKNOWN
    health_message: str = ""


class LiveStatistics:
    """Statistics of one camera; not thread-safe."""

    def __init__(self, camera: str, source: str) -> None:
        self.camera = camera
        self.source = source
        self.is_online = True
        self.lost = 0
        self.health = Health.UNKNOWN
        self.health_message = ""
        self._by_status: Counter[CaptionStatus] = Counter()
        self._dropped = 0
        self._first_s: float | None = None
        self._last_s: float | None = None
        self._recent: deque[tuple[float, float | None]] = deque(maxlen=_MAX_RECENT)  # received (monotonic), age

    def add(self, live: LiveCaption) -> None:
        """Count a caption."""
        self._by_status[live.status] += 1
        self._dropped += live.dropped
        self._last_s = live.received_monotonic_s
        if self._first_s is None:
            self._first_s = self._last_s
        self._recent.append((self._last_s, live.age_s))

    def summary(self, now_s: float | None = None) -> CameraSummary:
        """Return the statistics at `now_s` (:func:`time.monotonic`); None takes the current time."""
        now_s = time.monotonic() if now_s is None else now_s
        while self._recent and self._recent[0][0] < now_s - WINDOW_S:
            self._recent.popleft()
        ages = [age_s for _, age_s in self._recent if age_s is not None]
        median, high = np.percentile(ages, (50, 95)) if ages else (None, None)
        return CameraSummary(
            camera=self.camera,
            source=self.source,
            is_online=self.is_online,
            captions=sum(self._by_status.values()),
            by_status=dict(self._by_status),
            dropped=self._dropped,
            lost=self.lost,
            rate_hz=self._rate_hz(now_s),
            age_p50_s=None if median is None else float(median),
            age_p95_s=None if high is None else float(high),
            last_received_monotonic_s=self._last_s,
            health=self.health,
            health_message=self.health_message,
        )

    def _rate_hz(self, now_s: float) -> float:
        if not self._recent:
            return 0.0
        first_s = self._recent[0][0]
        if self._first_s is not None and self._first_s >= now_s - WINDOW_S:
            # The window is not full: n captions since the first one span n - 1 periods, and the time since the last.
            return max(0, len(self._recent) - 1) / max(now_s - first_s, 1e-3) if now_s > first_s else 0.0
        if len(self._recent) == _MAX_RECENT:
            return len(self._recent) / max(now_s - first_s, 1e-3)
        return len(self._recent) / WINDOW_S
