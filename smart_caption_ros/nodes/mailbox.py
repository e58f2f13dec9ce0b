"""One slot for the newest frame: a robot wants described what it sees now, not what it saw a queue ago."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Delivery(Generic[T]):
    """What `Mailbox.take` hands out.

    Attributes:
        item: the newest item.
        dropped: how many older items it pushed out since the previous delivery.
    """

    item: T
    dropped: int


class Mailbox(Generic[T]):
    """One slot between the thread that receives and the thread that works; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[T] = []  # empty or one item: an item may itself be None
        self._dropped = 0

    def put(self, item: T) -> bool:
        """Leaves `item` in the slot; an item that still waits there is dropped and counted.

        Returns:
            True when the slot was empty, so that somebody has to be told; False when a newer item took the
            place of one that somebody has been told about already.
        """
        with self._lock:
            was_empty = not self._waiting
            self._dropped += not was_empty
            self._waiting = [item]
            return was_empty

    def take(self) -> Delivery[T] | None:
        """Empties the slot; None when there is nothing in it. Never blocks."""
        with self._lock:
            if not self._waiting:
                return None
            delivery = Delivery(self._waiting.pop(), self._dropped)
            self._dropped = 0
            return delivery

    def clear(self) -> None:
        """Forgets the item that waits and the count of dropped ones."""
        with self._lock:
            self._waiting.clear()
            self._dropped = 0
