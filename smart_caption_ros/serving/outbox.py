"""What waits for one browser: the newest event of each kind, so that a slow browser gets less and delays nobody."""

import asyncio
from collections import Counter
from collections.abc import Sequence


class Outbox:
    """Newest events for one browser; all methods are called on the event loop's thread."""

    def __init__(self) -> None:
        self.missed: Counter[str] = Counter()
        """Events by key that newer ones replaced before they were taken."""
        self._events: dict[str, bytes] = {}
        self._changed = asyncio.Event()
        self._is_closed = False

    def put(self, key: str, event: bytes) -> bool:
        """Leave an event; return whether it replaces one of the same key that was not taken."""
        replaces = key in self._events
        self._events[key] = event
        self._changed.set()
        return replaces

    def drop(self, key: str) -> None:
        """Take back an event that was not taken."""
        self._events.pop(key, None)

    def close(self) -> None:
        """Drop what waits; :meth:`take` returns None from now on."""
        self._is_closed = True
        self._changed.set()

    async def take(self, timeout_s: float) -> Sequence[bytes] | None:
        """Take all that waits; empty after a timeout without an event, None once closed."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except asyncio.TimeoutError:
            return ()
        if self._is_closed:
            return None
        events = list(self._events.values())
        self._events.clear()
        self._changed.clear()
        return events
