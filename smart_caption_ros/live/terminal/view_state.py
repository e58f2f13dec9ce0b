"""What the view shows: the newest caption of each camera, a history, the chosen camera, pause and scrolling."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

from smart_caption_ros.live.feed import FeedItem
from smart_caption_ros.live.live_caption import LiveCaption
from smart_caption_ros.live.statistics import CameraSummary
from smart_caption_ros.live.terminal.keys import Key

HISTORY = 2000
"""Number of lines of captions and events that are kept."""
_FOLDED_WITHIN = 50  # lines before the end: a caption that is repeated later gets a line of its own


@dataclass
class HistoryLine:
    """An event, or a caption and those of its camera after it that say the same.

    Attributes:
        item: the newest of them.
        first_s: when the first one was received, seconds since the epoch.
        count: number of them.
    """

    item: FeedItem
    first_s: float
    count: int = 1

    @property
    def span_s(self) -> float:
        """Time from the first to the newest one."""
        return max(0.0, self.item.received_s - self.first_s)


class ViewState:
    """State of the view; the feed goes on while it is paused or scrolled back."""

    def __init__(self) -> None:
        self.is_paused = False
        self.camera: str | None = None
        """The chosen camera; None shows all."""
        self.cameras: tuple[CameraSummary, ...] = ()
        self.new_items = 0
        """Items that came while the view was paused."""
        self._lines: deque[HistoryLine] = deque(maxlen=HISTORY)
        self._shown: deque[HistoryLine] = self._lines
        self._scroll = 0  # lines between the end of the history and the last one that is shown

    def add(self, item: FeedItem) -> None:
        """Take a caption or an event of the feed."""
        if isinstance(item, LiveCaption):
            item = replace(item, image=None)  # thousands of images would fill the memory
        last = self._last_line(item.camera)
        is_repeated = last is not None and _says_the_same(last.item, item)
        if last is not None and is_repeated:
            last.item, last.count = item, last.count + 1
        else:
            self._lines.append(HistoryLine(item, item.received_s))
        if self.is_paused:
            self.new_items += 1
        elif self._scroll and not is_repeated and self._is_chosen(item):
            self._scroll += 1  # what is being read stays where it is

    def set_cameras(self, cameras: tuple[CameraSummary, ...]) -> None:
        """Take the statistics of the cameras; kept as they were while paused."""
        if not self.is_paused:
            self.cameras = cameras

    def press(self, key: Key | int, page: int) -> None:
        """Change the state as a key says.

        Args:
            key: of :class:`KeyParser`; 0 chooses all cameras and another number the camera of that place.
            page: number of lines of the history that are on the screen.
        """
        names = [camera.camera for camera in self.cameras]
        choices: list[str | None] = [None, *names]
        if isinstance(key, int):
            if key < len(choices):
                self._choose(choices[key])
        elif key in (Key.NEXT_CAMERA, Key.PREVIOUS_CAMERA):
            place = choices.index(self.camera) if self.camera in choices else 0
            step = 1 if key is Key.NEXT_CAMERA else -1
            self._choose(choices[(place + step) % len(choices)])
        elif key is Key.PAUSE:
            self.is_paused = not self.is_paused
            self._shown = deque(map(replace, self._lines)) if self.is_paused else self._lines
            self.new_items, self._scroll = 0, 0
        else:
            steps = {Key.UP: 1, Key.DOWN: -1, Key.PAGE_UP: page, Key.PAGE_DOWN: -page, Key.HOME: HISTORY}
            self._scroll = 0 if key is Key.END else max(0, self._scroll + steps.get(key, 0))

    def newest(self) -> LiveCaption | None:
        """Return the newest caption of the chosen camera, or of all."""
        items = (line.item for line in reversed(self._shown))
        captions = (item for item in items if isinstance(item, LiveCaption) and self._is_chosen(item))
        return max(captions, key=lambda caption: caption.received_monotonic_s, default=None)

    def history(self, lines: int) -> tuple[list[HistoryLine], int]:
        """Return so many lines, oldest first, and the number of newer ones that are scrolled away."""
        chosen = [line for line in self._shown if self._is_chosen(line.item)]
        self._scroll = min(self._scroll, max(0, len(chosen) - lines))
        end = len(chosen) - self._scroll
        return chosen[max(0, end - lines) : end], self._scroll

    def _last_line(self, camera: str | None) -> HistoryLine | None:
        newest: Iterable[HistoryLine] = islice(reversed(self._lines), _FOLDED_WITHIN)
        return next((line for line in newest if line.item.camera == camera), None)

    def _choose(self, camera: str | None) -> None:
        self.camera, self._scroll = camera, 0

    def _is_chosen(self, item: FeedItem) -> bool:
        return self.camera is None or item.camera in (self.camera, None)


def _says_the_same(one: FeedItem, other: FeedItem) -> bool:
    """Whether two captions, or failures, give equal lines: words, marks of the nouns and status."""
    if not (isinstance(one, LiveCaption) and isinstance(other, LiveCaption)):
        return False
    return _said(one) == _said(other)


def _said(live: LiveCaption) -> tuple[object, ...]:
    nouns = live.grounding.nouns if live.grounding is not None else ()
    return live.caption.text, live.status, live.status_message, [live.state_of(noun) for noun in nouns]
