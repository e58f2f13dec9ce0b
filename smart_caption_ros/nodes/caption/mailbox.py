"""One-slot mailbox: the newest item replaces the one that waits."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Delivery(Generic[T]):
    """An item taken from a mailbox.

    Attributes:
        item: the newest item.
        dropped: number of items replaced since the previous delivery.
    """

    item: T
    dropped: int


class Mailbox(Generic[T]):
    """Passes the newest item from a receiving thread to a working thread; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slot: list[T] = []  # holds at most one item, which may itself be None
        self._dropped = 0

    def put(self, item: T) -> bool:
        """Put an item into the slot; an item that waits there is dropped and counted.

        Returns:
            True when the slot was empty, so that the working thread has to be notified; False when the item replaced
            one for which it was notified already.
        """
        with self._lock:
            was_empty = not self._slot
            self._dropped += not was_empty
            self._slot = [item]
            return was_empty

    def take(self) -> Delivery[T] | None:
        """Take the item out of the slot, or return None where it is empty; never blocks."""
        with self._lock:
            if not self._slot:
                return None
            delivery = Delivery(self._slot.pop(), self._dropped)
            self._dropped = 0
            return delivery

    def clear(self) -> int:
        """Discard the waiting item and reset the count of dropped items.

        Returns:
            The number of items discarded, 0 or 1.
        """
        with self._lock:
            discarded = len(self._slot)
            self._slot.clear()
            self._dropped = 0
            return discarded
