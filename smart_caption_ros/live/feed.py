"""The interface of all feeds of captions."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, TypeVar

from smart_caption_ros.live.live_caption import FeedEvent, LiveCaption
from smart_caption_ros.live.statistics import CameraSummary

FeedItem = LiveCaption | FeedEvent
Self = TypeVar("Self", bound="CaptionFeed")


class FeedError(Exception):
    """A feed cannot start, or can never give a caption. The message is one sentence for a person."""


class CaptionFeed(Protocol):
    """Captions of one or several cameras as they come; a context manager that starts and ends its own threads.

    Its methods may be called from any thread. A consumer that is slower than the captions loses the oldest ones, which
    are counted; it never holds up a captioner.
    """

    @property
    def description(self) -> str:
        """What the feed reads, for a person: "video room.mp4 (...)", "ROS 2 domain 0"."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come and everything was taken. Captions of ROS never end."""

    @property
    def cameras(self) -> tuple[CameraSummary, ...]:
        """Statistics and health of each camera known so far, in the order in which they appeared."""

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Sentences that say what the feed waits for and what to check; empty once there is a caption."""

    def next(self, timeout_s: float) -> FeedItem | None:
        """Take the oldest caption or event; wait for one at most `timeout_s`, and return None then.

        Raises:
            FeedError: the feed can never give a caption.
        """

    def close(self) -> None:
        """End the threads. Calling it again does nothing; `next` returns what is left, and then None."""

    def __enter__(self: Self) -> Self:
        """Start.

        Raises:
            FeedError: the feed cannot start.
        """

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
