"""Captions as lines, for pipes, files and terminals that cannot move the cursor."""

from __future__ import annotations

import time
from collections.abc import Callable

from smart_caption_ros.live.feed import CaptionFeed
from smart_caption_ros.live.live_caption import EventKind, FeedEvent, LiveCaption
from smart_caption_ros.live.terminal.caption_text import caption_text, clock_time, figures_text
from smart_caption_ros.text import visible

_POLL_S = 0.5
_EXPLAIN_AFTER_S = 3.0
"""Time without a caption after which a sentence says what the feed waits for."""
_QUIET = (EventKind.APPEARED, EventKind.ENDED)


def print_lines(
    feed: CaptionFeed,
    *,
    count: int | None = None,
    out: Callable[[LiveCaption], object],
    report: Callable[[str], object],
) -> None:
    """Print one line for each caption until the feed ends.

    Args:
        feed: gives the captions.
        count: number of captions after which to end; None for no limit.
        out: prints a caption, on a line of text or of JSON.
        report: prints a sentence about what the feed waits for, or what failed.

    Raises:
        FeedError: the feed can never give a caption.
    """
    printed = 0
    explain_s = time.monotonic() + _EXPLAIN_AFTER_S
    while not feed.ended and (count is None or printed < count):
        item = feed.next(_POLL_S)
        if isinstance(item, LiveCaption):
            out(item)
            printed += 1
        elif isinstance(item, FeedEvent) and item.kind not in _QUIET:
            report(f"{visible(item.camera or '', 60)}: {visible(item.text, 400)}".lstrip(": "))
        if not printed and time.monotonic() > explain_s:
            explain_s = float("inf")
            if feed.waiting_for:
                report(f"waiting for {'; '.join(visible(sentence, 400) for sentence in feed.waiting_for)}")


def caption_line(live: LiveCaption) -> str:
    """Return a caption on a line: time, camera, the caption with its marks, and the figures in parentheses."""
    figures = figures_text(live).plain
    caption = caption_text(live).plain
    return f"{clock_time(live.received_s)} {visible(live.camera, 60)}: {caption}{f' ({figures})' if figures else ''}"
