"""Takes messages of one subscription in a thread of its own, past the node's executor.

rclpy's executor gathers everything that a node has (services, timers, events) anew for each message that arrives.
With a camera's thirty images a second that takes more processor time than copying the pixels. The subscription's events
are served here as well: an executor that waits for them is woken by every message, and again and again until somebody
has taken it.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.event_handler import EventHandler
from rclpy.exceptions import InvalidHandle
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.utilities import timeout_sec_to_nsec

_POLL_S = 0.5  # how long an end of the whole context may wait to be noticed
_KEPT_BYTES = 32 * 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h


class ReadElsewhere(MutuallyExclusiveCallbackGroup):
    """The group of a subscription that a :class:`Reader` takes from: the executor leaves it and its events alone."""

    def can_execute(self, entity: Any) -> bool:
        """Whether the executor may serve ``entity`` now."""
        return not isinstance(entity, (Subscription, EventHandler)) and bool(super().can_execute(entity))


class Reader:
    """Calls the subscription's callback with every message and its events' callbacks, until it is closed."""

    def __init__(self, node: Node, subscription: Subscription, on_error: Callable[[Exception], None]) -> None:
        """Starts at once.

        Args:
            node: the subscription's node.
            subscription: made with a callback group :class:`ReadElsewhere`; its callback takes the message alone, the
                serialised one where it was made with ``raw=True``.
            on_error: called with what a callback raises; the next message is taken all the same.
        """
        self._context, self._subscription, self._on_error = node.context, subscription, on_error
        self._wake, self._closed = GuardCondition(None, None, context=node.context), threading.Event()
        _keep_buffers()
        self._thread = threading.Thread(target=self._run, name="images", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Takes no more messages; returns once the one in hand, if any, was delivered."""
        self._closed.set()
        with contextlib.suppress(InvalidHandle):  # the context is gone, and the thread with it
            self._wake.trigger()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._wake.destroy()

    def _run(self) -> None:
        context = self._context.handle
        events: list[EventHandler] = self._subscription.event_handlers  # type: ignore[assignment] # rclpy annotates one
        assert context is not None
        try:
            with contextlib.ExitStack() as in_use:
                for each in (self._subscription.handle, self._wake.handle, context, *events):
                    in_use.enter_context(each)
                wait_set = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, len(events), context)
                while not self._closed.is_set() and self._context.ok():
                    wait_set.clear_entities()
                    wait_set.add_subscription(self._subscription.handle)
                    wait_set.add_guard_condition(self._wake.handle)
                    for event in events:
                        event.add_to_wait_set(wait_set)
                    wait_set.wait(timeout_sec_to_nsec(_POLL_S))
                    if self._closed.is_set():
                        break
                    for event in events:
                        if event.is_ready(wait_set) and (what := event.take_data()):
                            self._call(event.callback, what)
                    taken = self._subscription.handle.take_message(self._subscription.msg_type, self._subscription.raw)
                    if taken is not None:
                        self._call(self._subscription.callback, taken[0])
        except InvalidHandle:
            pass  # subscription, node or context were destroyed first

    def _call(self, callback: Callable[[Any], None], given: Any) -> None:
        try:
            callback(given)
        except Exception as error:  # one message must not end the thread
            self._on_error(error)


def _keep_buffers() -> None:
    """Has glibc keep some freed memory for the next image: by default it gives a large block back to the system with
    every image and faults it in again, page by page, which takes longer than to copy the image."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # other C libraries have none
            libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
            libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
