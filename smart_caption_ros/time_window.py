"""Time window of events, for the statistics of the caption node and of caption feeds."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

_MAX_ITEMS = 10_000  # beyond this number the oldest items are dropped


class TimeWindow(Generic[T]):
    """Items of the last seconds, oldest first; not thread-safe. All times have to be of the same monotonic clock."""

    def __init__(self, length_s: float) -> None:
        """``length_s``: age above which items are dropped, seconds."""
        self.length_s = length_s
        self._items: deque[tuple[float, T]] = deque(maxlen=_MAX_ITEMS)
        self._first_s: float | None = None

    def add(self, now_s: float, item: T) -> None:
        if self._first_s is None:
            self._first_s = now_s
        self._items.append((now_s, item))

    def clear(self) -> None:
        """Drop all items; the next one counts as the first."""
        self._items.clear()
        self._first_s = None

    def items(self, now_s: float) -> tuple[T, ...]:
        """Return the items that are in the window at a time, and drop older ones."""
        self._forget(now_s)
        return tuple(item for _, item in self._items)

    def rate_hz(self, now_s: float) -> float:
        """Return the number of items per second in the window, or since the first item if that lies in the window."""
        self._forget(now_s)
        if not self._items or self._first_s is None:
            return 0.0
        oldest_s = self._items[0][0]
        if self._first_s >= now_s - self.length_s:
            # n items span n - 1 periods, and the time since the last item.
            return (len(self._items) - 1) / max(now_s - oldest_s, 1e-3) if now_s > oldest_s else 0.0
        is_full = len(self._items) == self._items.maxlen
        return len(self._items) / (max(now_s - oldest_s, 1e-3) if is_full else self.length_s)

    def _forget(self, now_s: float) -> None:
        while self._items and self._items[0][0] < now_s - self.length_s:
            self._items.popleft()
