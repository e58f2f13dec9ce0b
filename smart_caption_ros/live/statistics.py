"""Counts, rates and ages of the captions of one camera."""

import enum
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from smart_caption_ros.record import CaptionRecord, CaptionStatus
from smart_caption_ros.time_window import TimeWindow

WINDOW_S = 30.0
"""Time window of rates and ages, seconds."""
DIAGNOSTICS_TIMEOUT_S = 3.0
"""Minimum time without diagnostics after which a node that has sent some does not respond, seconds; the time is also at
least three periods of its diagnostics."""


class Health(enum.Enum):
    """Level of the diagnostics of a camera."""

    UNKNOWN = "unknown"
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass
class CameraSummary:
    """A camera at one moment.

    Attributes:
        source: full name of the topic, or the source as the user named it.
        is_online: whether captions can arrive: the topic has a publisher, or the source has not ended.
        captions: number of captions so far.
        dropped: number of images that newer ones replaced before they were captioned.
        lost: number of captions that were dropped because the consumer of the feed was too slow.
        rate_hz: captions per second in the last :data:`WINDOW_S` seconds.
        age_p50_s: median age of those captions, see :attr:`CaptionRecord.age_s`; None if no age is known.
        age_p95_s: 95th percentile of the ages.
        last_received_monotonic_s: time of the last caption by :func:`time.monotonic`; None before the first.
        is_responding: False if its node has sent diagnostics and then stopped, see :data:`DIAGNOSTICS_TIMEOUT_S`.
    """

    camera: str
    source: str
    is_online: bool = True
    captions: int = 0
    by_status: Mapping[CaptionStatus, int] = field(default_factory=Counter)
    dropped: int = 0
    lost: int = 0
    rate_hz: float = 0.0
    age_p50_s: float | None = None
    age_p95_s: float | None = None
    last_received_monotonic_s: float | None = None
    health: Health = Health.UNKNOWN
    health_message: str = ""
    is_responding: bool = True


class LiveStatistics:
    """Statistics of one camera; not thread-safe."""

    def __init__(self, camera: str, source: str) -> None:
        self.camera = CameraSummary(camera, source)
        """The camera, without the fields that depend on the present time: rate, ages and whether its node responds."""
        self._added_s = time.monotonic()
        self._diagnosed_s: float | None = None
        self._diagnostics_period_s = 0.0
        self._ages_s: TimeWindow[float | None] = TimeWindow(WINDOW_S)

    @property
    def last_s(self) -> float:
        """Time at which the last caption was received, or else the camera was added, by :func:`time.monotonic`."""
        return self.camera.last_received_monotonic_s or self._added_s

    def add(self, record: CaptionRecord) -> None:
        camera = self.camera
        camera.is_online = True
        camera.captions += 1
        camera.by_status = Counter(camera.by_status) + Counter([record.status])
        camera.dropped += record.dropped
        camera.last_received_monotonic_s = record.received_monotonic_s
        self._ages_s.add(record.received_monotonic_s, record.age_s)

    def set_health(self, health: Health, message: str) -> None:
        now_s = time.monotonic()
        if self._diagnosed_s is not None:
            self._diagnostics_period_s = now_s - self._diagnosed_s
        self.camera.health, self.camera.health_message, self._diagnosed_s = health, message, now_s

    def summary(self, now_s: float) -> CameraSummary:
        """Return the statistics at `now_s` (:func:`time.monotonic`)."""
        ages = [age_s for age_s in self._ages_s.items(now_s) if age_s is not None]
        median, high = np.percentile(ages, (50, 95)).tolist() if ages else (None, None)
        return replace(
            self.camera,
            rate_hz=self._ages_s.rate_hz(now_s),
            age_p50_s=median,
            age_p95_s=high,
            is_responding=self._diagnosed_s is None
            or now_s - self._diagnosed_s < max(DIAGNOSTICS_TIMEOUT_S, 3 * self._diagnostics_period_s),
        )
