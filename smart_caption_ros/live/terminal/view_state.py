"""What the view shows: the newest caption of each camera, a history, the chosen camera, pause and scrolling."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from smart_caption_ros.live.feed import FeedItem
from smart_caption_ros.live.live_caption import LiveCaption
from smart_caption_ros.live.statistics import CameraSummary
from smart_caption_ros.live.terminal.keys import Key

HISTORY = 2000
"""Number of captions and events that are kept."""


class ViewState:
    """State of the view; the feed goes on while it is paused or scrolled back."""

    def __init__(self) -> None:
        self.is_paused = False
        self.camera: str | None = None
        """The chosen camera; None shows all."""
        self.cameras: tuple[CameraSummary, ...] = ()
        self.new_items = 0
        """Items that came while the view was paused."""
        self._items: deque[FeedItem] = deque(maxlen=HISTORY)
        self._shown: Sequence[FeedItem] = self._items
        self._scroll = 0  # items between the end of the history and the last one that is shown

    def add(self, item: FeedItem) -> None:
        """Take a caption or an event of the feed."""
        if isinstance(item, LiveCaption):
            item = replace(item, image=None)  # thousands of images would fill the memory
        self._items.append(item)
        if self.is_paused:
            self.new_items += 1
        elif self._scroll and self._is_chosen(item):
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
            self._shown = tuple(self._items) if self.is_paused else self._items
            self.new_items, self._scroll = 0, 0
        else:
            steps = {Key.UP: 1, Key.DOWN: -1, Key.PAGE_UP: page, Key.PAGE_DOWN: -page, Key.HOME: HISTORY}
            self._scroll = 0 if key is Key.END else max(0, self._scroll + steps.get(key, 0))

    def newest(self) -> LiveCaption | None:
        """Return the newest caption of the chosen camera, or of all."""
        captions = (item for item in reversed(self._shown) if isinstance(item, LiveCaption))
        return next((caption for caption in captions if self._is_chosen(caption)), None)

    def history(self, lines: int) -> tuple[list[FeedItem], int]:
        """Return the items for so many lines, oldest first, and the number of newer ones that are scrolled away."""
        chosen = [item for item in self._shown if self._is_chosen(item)]
        self._scroll = min(self._scroll, max(0, len(chosen) - lines))
        end = len(chosen) - self._scroll
        return list(islice(chosen, max(0, end - lines), end)), self._scroll

    def _choose(self, camera: str | None) -> None:
        self.camera, self._scroll = camera, 0

    def _is_chosen(self, item: FeedItem) -> bool:
        return self.camera is None or item.camera in (self.camera, None)
