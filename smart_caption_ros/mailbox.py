"""One-slot mailbox: a new item replaces the one that waits."""

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Passes the newest item from a receiving thread to a working thread; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slot: list[T] = []
        self._dropped = 0

    @property
    def is_empty(self) -> bool:
        return not self._slot

    def put(self, item: T) -> bool:
        """Put an item into the slot; an item that is already there is dropped and counted.

        Returns:
            True if the slot was empty, so that the caller has to notify the working thread; False if the item replaced
            another one, for which the thread is already notified.
        """
        with self._lock:
            was_empty = not self._slot
            self._dropped += not was_empty
            self._slot = [item]
            return was_empty

    def take(self) -> tuple[T, int] | None:
        """Take the item, with the number of items dropped since the last one taken; None if the slot is empty."""
        with self._lock:
            if not self._slot:
                return None
            dropped, self._dropped = self._dropped, 0
            return self._slot.pop(), dropped

    def clear(self) -> int:
        """Discard the waiting item and reset the count of dropped items; return the number discarded, 0 or 1."""
        with self._lock:
            discarded = len(self._slot)
            self._slot.clear()
            self._dropped = 0
            return discarded
