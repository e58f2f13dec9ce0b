"""What all feeds of captions share: a bounded queue between their threads and the consumer, and statistics."""

import enum
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TypeVar

from smart_caption_ros.errors import ExpectedError
from smart_caption_ros.live.statistics import CameraSummary, Health, LiveStatistics
from smart_caption_ros.record import ACCEPT_ALL, CaptionRecord, Trust

MAX_CAMERAS = 64
"""Maximum number of cameras; beyond it the camera that has been silent longest is dropped."""
CAPACITY = 256

_MAX_IMAGES = 16  # 100 MB at 1080p


class EventKind(enum.Enum):
    """What a :class:`FeedEvent` is about."""

    APPEARED = "appeared"
    """A camera has a publisher now, for the first time or again."""
    GONE = "gone"
    """A camera has no publisher any more, or its source has ended."""
    DIAGNOSTICS = "diagnostics"
    """The health of a camera changed to another level."""
    ERROR = "error"
    """Something could not be read."""
    ENDED = "ended"
    """The feed gives nothing more; its last item."""


@dataclass(frozen=True)
class FeedEvent:
    """Something beside the captions that a person wants to know.

    Attributes:
        camera: name of the camera; None where it is about no camera or several.
        received_monotonic_s: when it happened, by :func:`time.monotonic`; received_s is seconds since the epoch.
    """

    kind: EventKind
    text: str
    camera: str | None = None
    received_s: float = field(default_factory=time.time)
    received_monotonic_s: float = field(default_factory=time.monotonic)


FeedItem = CaptionRecord | FeedEvent
Self = TypeVar("Self", bound="CaptionFeed")


class FeedError(ExpectedError):
    """A feed cannot start, or can never give a caption."""


class CaptionFeed:
    """Captions of one or several cameras as they come; a context manager that starts and ends its own threads.

    All methods may be called from any thread. A consumer that is slower than the captions loses the oldest ones, which
    are counted; it never holds up a captioner. While the images of 16 captions wait, further captions come without
    theirs.
    """

    def __init__(self, capacity: int = CAPACITY, trust: Trust = ACCEPT_ALL) -> None:
        """``trust``: which captions are refused, also of those that come with the status OK."""
        self._capacity = capacity
        self._trust = trust
        self._changed = threading.Condition()
        self._items: deque[FeedItem] = deque()
        self._statistics: dict[str, LiveStatistics] = {}
        self._forgotten = 0
        self._is_closed = False
        self._failure: FeedError | None = None

    def __enter__(self: Self) -> Self:
        """Start; raises FeedError where that is not possible."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # For the consumer.

    @property
    def description(self) -> str:
        """What the feed reads, for a person: "video room.mp4 (...)", "ROS 2 domain 0"."""
        return ""

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Sentences that say what the feed waits for and what to check; empty once there is a caption."""
        return ()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come and everything was taken. Captions of ROS never end."""
        with self._changed:
            return self._is_closed and not self._items

    @property
    def cameras(self) -> tuple[CameraSummary, ...]:
        """Statistics and health of each camera known so far, in the order in which they appeared."""
        now_s = time.monotonic()
        with self._changed:
            return tuple(statistics.summary(now_s) for statistics in self._statistics.values())

    @property
    def camera_names(self) -> frozenset[str]:
        with self._changed:
            return frozenset(self._statistics)

    @property
    def forgotten(self) -> int:
        """Number of cameras that were dropped because there were more than :data:`MAX_CAMERAS`."""
        with self._changed:
            return self._forgotten

    @property
    def has_captions(self) -> bool:
        return any(camera.captions for camera in self.cameras)

    def next(self, timeout_s: float) -> FeedItem | None:
        """Take the oldest caption or event; wait for one at most `timeout_s`, and return None then.

        Raises FeedError where the feed can never give a caption.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items or self._is_closed), timeout_s)
            if self._items:
                return self._items.popleft()
            if self._failure is not None:
                raise self._failure
            return None

    def close(self, text: str = "", failure: FeedError | None = None) -> None:
        """End the feed; `next` returns what is left, and then None. Calling it again does nothing.

        Args:
            text: the sentence of the last event, of the kind ENDED; empty sends none.
            failure: raised by :meth:`next` as soon as everything was taken.
        """
        with self._changed:
            if not self._is_closed:
                if text:
                    self._put(FeedEvent(EventKind.ENDED, text))
                self._is_closed, self._failure = True, failure
                self._changed.notify_all()

    # For the threads that receive or make the captions.

    def add_camera(self, camera: str, source: str, text: str) -> None:
        """Note that a camera is there, and say so in an event if it is new or was gone.

        Args:
            source: full name of the topic, or the source as the user named it.
        """
        with self._changed:
            known = self._statistics.get(camera)
            if known is not None and known.camera.is_online:
                return
            (known or self._add_statistics(camera, source)).camera.is_online = True
            self._put(FeedEvent(EventKind.APPEARED, text, camera))

    def remove_camera(self, camera: str, text: str) -> None:
        """Note that a camera is gone, and say so in an event; its statistics stay."""
        with self._changed:
            known = self._statistics.get(camera)
            if known is not None and known.camera.is_online:
                known.camera.is_online = False
                self._put(FeedEvent(EventKind.GONE, text, camera))

    def forget_camera(self, camera: str) -> None:
        """Remove a camera and its statistics, because it turned out to have another name."""
        with self._changed:
            self._statistics.pop(camera, None)

    def add(self, live: CaptionRecord) -> None:
        """Judge and count a caption, and pass it on."""
        live = live.judged(self._trust)
        with self._changed:
            statistics = self._statistics.get(live.camera) or self._add_statistics(live.camera, live.source)
            statistics.add(live)
            self._put(live)

    def add_event(self, event: FeedEvent) -> None:
        with self._changed:
            self._put(event)

    def set_health(self, camera: str, health: Health, message: str) -> None:
        """Keep what the diagnostics say, and say so in an event if the level changed for the worse or the better."""
        with self._changed:
            known = self._statistics.get(camera)
            if known is None:
                return
            before = known.camera.health
            known.set_health(health, message)
            if health is not before and (before, health) != (Health.UNKNOWN, Health.OK):
                self._put(FeedEvent(EventKind.DIAGNOSTICS, message, camera))

    def _add_statistics(self, camera: str, source: str) -> LiveStatistics:
        if len(self._statistics) >= MAX_CAMERAS:
            del self._statistics[min(self._statistics, key=lambda name: self._statistics[name].last_s)]
            self._forgotten += 1
        return self._statistics.setdefault(camera, LiveStatistics(camera, source))

    def _put(self, item: FeedItem) -> None:
        if self._is_closed:
            return
        if len(self._items) >= self._capacity:
            oldest = self._items.popleft()
            if isinstance(oldest, CaptionRecord) and oldest.camera in self._statistics:
                self._statistics[oldest.camera].camera.lost += 1
        if isinstance(item, CaptionRecord) and item.image is not None:
            waiting = sum(isinstance(other, CaptionRecord) and other.image is not None for other in self._items)
            item = replace(item, image=None) if waiting >= _MAX_IMAGES else item
        self._items.append(item)
        self._changed.notify_all()
