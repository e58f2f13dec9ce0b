"""The loop of the view: takes what the feed gives, obeys the keys, and draws a few times a second."""

from __future__ import annotations

import signal
import time

from smart_caption_ros.live.feed import CaptionFeed
from smart_caption_ros.live.terminal.keys import Key
from smart_caption_ros.live.terminal.layout import history_lines, render
from smart_caption_ros.live.terminal.screen import Screen
from smart_caption_ros.live.terminal.view_state import ViewState

POLL_S = 0.1
_REDRAW_S = 0.25
"""Time between two redraws for captions; a key redraws at once."""
_CLOCK_S = 1.0
"""Time between two redraws while nothing happens, for the clock and the ages."""
_MAX_ITEMS = 1000  # a feed that is faster than this program must not keep it from drawing
_SIGNAL_STATUS = 128


def watch(feed: CaptionFeed) -> int:
    """Show the captions of a feed on the terminal until the user quits.

    Returns:
        The exit status: 0 after q, 130 after Ctrl-C, 128 and the number of another signal that ended it.

    Raises:
        FeedError: the feed can never give a caption.
        OSError: the terminal cannot be used.
    """
    state = ViewState()
    with Screen() as screen:
        drawn_s, is_changed, size = 0.0, True, screen.size
        while screen.ended_by is None:
            is_changed = _take(feed, state) or is_changed
            keys = screen.wait(POLL_S)
            if Key.QUIT in keys:
                return 0
            for key in keys:
                if key is Key.REDRAW:
                    screen.forget()
                state.press(key, history_lines(screen.size[1], len(state.cameras)))
            now_s = time.monotonic()
            is_due = now_s - drawn_s >= (_REDRAW_S if is_changed else _CLOCK_S)
            if keys or is_due or screen.size != size:
                size = screen.size
                state.set_cameras(feed.cameras)
                try:
                    screen.draw(
                        render(
                            state,
                            size=size,
                            now_s=time.time(),
                            now_monotonic_s=now_s,
                            description=feed.description,
                            waiting_for=feed.waiting_for,
                        )
                    )
                except OSError:
                    if screen.ended_by is None:
                        screen.ended_by = signal.SIGHUP
                drawn_s, is_changed = now_s, False
        ended_by = screen.ended_by
    return _SIGNAL_STATUS + ended_by


def _take(feed: CaptionFeed, state: ViewState) -> bool:
    """Take what has come; return whether anything has."""
    for count in range(_MAX_ITEMS):
        item = feed.next(0.0)
        if item is None:
            return count > 0
        state.add(item)
    return True
