"""What stands between the threads of a feed and its consumer: a bounded queue, and the statistics of each camera."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from types import TracebackType

from smart_caption_ros.live.feed import FeedError, FeedItem
from smart_caption_ros.live.live_caption import EventKind, FeedEvent, LiveCaption
from smart_caption_ros.live.statistics import CameraSummary, Health, LiveStatistics

CAPACITY = 256

_MAX_IMAGES = 16  # 100 MB at 1080p


class FeedBuffer:
    """Passes captions and events from the threads of a feed to its consumer; thread-safe.

    Where the consumer is late, the oldest item gives way, and a caption that does is counted as lost. While the
    images of 16 captions wait, further captions come without theirs.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        """
        Args:
            capacity: maximum number of items that wait for the consumer.
        """
        self._capacity = capacity
        self._changed = threading.Condition()
        self._items: deque[FeedItem] = deque()
        self._statistics: dict[str, LiveStatistics] = {}
        self._is_closed = False
        self._failure: FeedError | None = None

    @property
    def ended(self) -> bool:
        """Whether the feed gives nothing more and everything was taken."""
        with self._changed:
            return self._is_closed and not self._items

    @property
    def cameras(self) -> tuple[CameraSummary, ...]:
        """Statistics and health of each camera, in the order in which they appeared."""
        now_s = time.monotonic()
        with self._changed:
            return tuple(each.summary(now_s) for each in self._statistics.values())

    @property
    def has_captions(self) -> bool:
        """Whether any camera has given a caption."""
        return any(each.captions for each in self.cameras)

    def next(self, timeout_s: float) -> FeedItem | None:
        """Take the oldest item; see :meth:`smart_caption_ros.live.CaptionFeed.next`."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items or self._is_closed), timeout_s)
            if self._items:
                return self._items.popleft()
            if self._failure is not None:
                raise self._failure
            return None

    def add_camera(self, camera: str, source: str, text: str) -> None:
        """Note that a camera is there, and say so in an event if it is new or was gone.

        Args:
            camera: name of the camera.
            source: full name of the topic, or the source as the user named it.
            text: the sentence of the event.
        """
        with self._changed:
            known = self._statistics.get(camera)
            if known is not None and known.is_online:
                return
            if known is None:
                self._statistics[camera] = LiveStatistics(camera, source)
            else:
                known.is_online = True
            self._put(FeedEvent(EventKind.APPEARED, text, camera))

    def remove_camera(self, camera: str, text: str) -> None:
        """Note that a camera is gone, and say so in an event; its statistics stay."""
        with self._changed:
            known = self._statistics.get(camera)
            if known is not None and known.is_online:
                known.is_online = False
                self._put(FeedEvent(EventKind.GONE, text, camera))

    def forget_camera(self, camera: str) -> None:
        """Remove a camera and its statistics, because it turned out to have another name."""
        with self._changed:
            self._statistics.pop(camera, None)

    def add(self, live: LiveCaption) -> None:
        """Count a caption and pass it on."""
        with self._changed:
            statistics = self._statistics.setdefault(live.camera, LiveStatistics(live.camera, live.source))
            statistics.is_online = True
            statistics.add(live)
            self._put(live)

    def add_event(self, event: FeedEvent) -> None:
        """Pass an event on."""
        with self._changed:
            self._put(event)

    def set_health(self, camera: str, health: Health, message: str) -> None:
        """Keep what the diagnostics say, and say so in an event if the level changed for the worse or the better."""
        with self._changed:
            known = self._statistics.get(camera)
            if known is None:
                return
            before, known.health, known.health_message = known.health, health, message
            if health is not before and (before, health) != (Health.UNKNOWN, Health.OK):
                self._put(FeedEvent(EventKind.DIAGNOSTICS, message, camera))

    def close(self, text: str = "", failure: FeedError | None = None) -> None:
        """End the feed.

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

    def _put(self, item: FeedItem) -> None:
        if self._is_closed:
            return
        if len(self._items) >= self._capacity:
            oldest = self._items.popleft()
            if isinstance(oldest, LiveCaption) and oldest.camera in self._statistics:
                self._statistics[oldest.camera].lost += 1
        if isinstance(item, LiveCaption) and item.image is not None and self._waiting_images() >= _MAX_IMAGES:
            item = replace(item, image=None)
        self._items.append(item)
        self._changed.notify_all()

    def _waiting_images(self) -> int:
        return sum(isinstance(each, LiveCaption) and each.image is not None for each in self._items)


class BufferedFeed:
    """The part of a :class:`smart_caption_ros.live.CaptionFeed` that its buffer answers, common to all feeds."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """
        Args:
            capacity: maximum number of captions and events that wait for the consumer.
        """
        self._buffer = FeedBuffer(capacity)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        return self._buffer.ended

    @property
    def cameras(self) -> tuple[CameraSummary, ...]:
        return self._buffer.cameras

    def next(self, timeout_s: float) -> FeedItem | None:
        return self._buffer.next(timeout_s)

    def close(self) -> None:
        self._buffer.close()
