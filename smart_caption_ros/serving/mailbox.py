"""What waits for one browser: for each key the newest message, so that a slow browser gets less and delays nobody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence


class Mailbox:
    """Newest messages for one browser; all methods are called on the event loop's thread."""

    def __init__(self) -> None:
        self.missed: Counter[str] = Counter()
        """Messages by key that newer ones replaced before they were taken."""
        self._messages: dict[str, bytes] = {}
        self._changed = asyncio.Event()
        self._is_closed = False

    def put(self, key: str, message: bytes) -> bool:
        """Leave a message; return whether it replaces one that was not taken."""
        replaces = key in self._messages
        self._messages[key] = message
        self._changed.set()
        return replaces

    def close(self) -> None:
        """Drop what waits; :meth:`take` returns None from now on."""
        self._is_closed = True
        self._messages.clear()
        self._changed.set()

    async def take(self, timeout_s: float) -> Sequence[bytes] | None:
        """Take all that waits; empty after a timeout without a message, None once closed."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except asyncio.TimeoutError:
            return ()
        if self._is_closed:
            return None
        messages = list(self._messages.values())
        self._messages.clear()
        self._changed.clear()
        return messages
