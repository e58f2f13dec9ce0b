"""Base class of all caption feeds: a bounded queue between their threads and the consumer, and statistics."""

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
"""Maximum number of cameras; beyond this number the camera that has been silent longest is dropped."""
CAPACITY = 256
"""Maximum number of captions and events in the queue of a feed."""

_MAX_IMAGES = 16  # 100 MB at 1080p


class EventKind(enum.Enum):
    """What a :class:`FeedEvent` is about."""

    APPEARED = "appeared"
    """A camera has got a publisher, for the first time or again."""
    GONE = "gone"
    """A camera no longer has a publisher, or its source has ended."""
    DIAGNOSTICS = "diagnostics"
    """The health of a camera changed to another level."""
    ERROR = "error"
    """Something could not be read."""
    ENDED = "ended"
    """The feed has ended; this is its last item."""


@dataclass(frozen=True)
class FeedEvent:
    """An event that a user should see beside the captions.

    Attributes:
        camera: name of the camera; None if the event is about no camera or about several.
        received_s: time of the event, seconds since the epoch.
        received_monotonic_s: the same time by :func:`time.monotonic`.
    """

    kind: EventKind
    text: str
    camera: str | None = None
    received_s: float = field(default_factory=time.time)
    received_monotonic_s: float = field(default_factory=time.monotonic)


FeedItem = CaptionRecord | FeedEvent
Self = TypeVar("Self", bound="CaptionFeed")


class FeedError(ExpectedError):
    """A feed cannot start, or will never have a caption."""


class CaptionFeed:
    """Captions of one or several cameras as they arrive; a context manager that starts and ends its own threads.

    All methods may be called from any thread. A consumer that is slower than the captions loses the oldest ones, which
    are counted; it never delays a captioner. While 16 captions with images are waiting, further captions lose their
    images.
    """

    def __init__(self, capacity: int = CAPACITY, trust: Trust = ACCEPT_ALL) -> None:
        """``trust``: rule by which captions with the status OK are refused."""
        self._capacity = capacity
        self._trust = trust
        self._changed = threading.Condition()
        self._items: deque[FeedItem] = deque()
        self._statistics: dict[str, LiveStatistics] = {}
        self._forgotten = 0
        self._is_closed = False
        self._failure: FeedError | None = None

    def __enter__(self: Self) -> Self:
        """Start the feed; raises FeedError if it cannot start."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # For the consumer.

    @property
    def description(self) -> str:
        """Source of the captions, as shown to the user: "video room.mp4 (...)", "ROS 2 domain 0"."""
        return ""

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Sentences that say what the feed waits for and what to check; empty after the first caption."""
        return ()

    @property
    def ended(self) -> bool:
        """Whether the feed has ended and all items were taken; a feed of ROS does not end by itself."""
        with self._changed:
            return self._is_closed and not self._items

    @property
    def cameras(self) -> tuple[CameraSummary, ...]:
        """Statistics and health of each known camera, in the order in which the cameras appeared."""
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
        """Take the oldest caption or event; wait for one at most `timeout_s` seconds, and return None if none arrives.

        Raises FeedError if the feed has failed and will have no more captions.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items or self._is_closed), timeout_s)
            if self._items:
                return self._items.popleft()
            if self._failure is not None:
                raise self._failure
            return None

    def close(self, text: str = "", failure: FeedError | None = None) -> None:
        """End the feed; `next` returns the remaining items, and then None. A second call does nothing.

        Args:
            text: text of a last event of the kind ENDED; empty adds no event.
            failure: raised by :meth:`next` when all items were taken.
        """
        with self._changed:
            if not self._is_closed:
                if text:
                    self._put(FeedEvent(EventKind.ENDED, text))
                self._is_closed, self._failure = True, failure
                self._changed.notify_all()

    # For the threads that receive or make the captions.

    def add_camera(self, camera: str, source: str, text: str) -> None:
        """Note that a camera is online, and add an event if it is new or was gone.

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
        """Note that a camera is gone, and add an event; its statistics are kept."""
        with self._changed:
            known = self._statistics.get(camera)
            if known is not None and known.camera.is_online:
                known.camera.is_online = False
                self._put(FeedEvent(EventKind.GONE, text, camera))

    def forget_camera(self, camera: str) -> None:
        """Remove a camera and its statistics, because its captions have another name."""
        with self._changed:
            self._statistics.pop(camera, None)

    def add(self, record: CaptionRecord) -> None:
        """Apply the trust rule to a caption, count it, and add it to the queue."""
        record = record.judged(self._trust)
        with self._changed:
            statistics = self._statistics.get(record.camera) or self._add_statistics(record.camera, record.source)
            statistics.add(record)
            self._put(record)

    def add_event(self, event: FeedEvent) -> None:
        with self._changed:
            self._put(event)

    def set_health(self, camera: str, health: Health, message: str) -> None:
        """Store the health of a camera, and add an event if it has changed, except from unknown to OK."""
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
