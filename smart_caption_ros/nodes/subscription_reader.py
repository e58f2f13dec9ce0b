"""Take the messages of one subscription on a thread of its own, without the node's executor.

For each message, rclpy's executor builds a new wait set of everything that the node has: services, timers, events. At
30 images per second that takes more CPU time than copying the pixels. The events of the subscription are handled here
as well, because every message wakes an executor that waits for them, repeatedly until the message is taken.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.utilities import timeout_sec_to_nsec

from smart_caption_ros.nodes.ros_versions import EventHandler

_POLL_S = 0.5  # longest delay until the thread notices that the context was shut down
_PAUSE_AFTER_ERROR_S = 0.1  # an error that repeats must not occupy a core


class ExecutorBypassGroup(MutuallyExclusiveCallbackGroup):
    """Callback group whose subscriptions and events the executor ignores; a :class:`SubscriptionReader` serves them."""

    def can_execute(self, entity: Any) -> bool:
        """Return whether the executor may serve ``entity`` now."""
        return not isinstance(entity, (Subscription, EventHandler)) and bool(super().can_execute(entity))


class SubscriptionReader:
    """Calls the callbacks of a subscription and of its events until it is closed."""

    def __init__(self, node: Node, subscription: Subscription, on_error: Callable[[Exception], None]) -> None:
        """Start the thread.

        Args:
            node: the node of the subscription.
            subscription: created with an :class:`ExecutorBypassGroup`. Its callback takes one argument: the message,
                or the serialised message where the subscription was created with ``raw=True``.
            on_error: called on the thread with every exception, of a callback or of ROS; the thread continues with the
                next message.
        """
        self._context, self._subscription, self._on_error = node.context, subscription, on_error
        self._wake, self._closed = GuardCondition(None, None, context=node.context), threading.Event()
        self._beat_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="images", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    @property
    def silent_s(self) -> float:
        """Time since the thread last passed its loop, in seconds; about half a second at most while it is healthy."""
        return time.monotonic() - self._beat_s

    def close(self) -> None:
        """Stop taking messages; returns after the callback in progress, if any, has returned."""
        self._closed.set()
        with contextlib.suppress(InvalidHandle):  # the context was shut down, which ends the thread as well
            self._wake.trigger()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._wake.destroy()

    def _run(self) -> None:
        try:
            with contextlib.ExitStack() as in_use:
                context = self._context.handle
                assert context is not None
                events: list[EventHandler] = self._subscription.event_handlers  # type: ignore[assignment] # annotates one
                for each in (self._subscription.handle, self._wake.handle, context, *events):
                    in_use.enter_context(each)
                wait_set = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, len(events), context)
                while not self._closed.is_set() and self._context.ok():
                    self._beat_s = time.monotonic()
                    try:
                        self._wait_and_take(wait_set, events)
                    except InvalidHandle:
                        raise
                    except Exception as error:  # one failure of ROS must not end the thread
                        self._on_error(error)
                        self._closed.wait(_PAUSE_AFTER_ERROR_S)
        except InvalidHandle:
            pass  # the subscription, the node or the context was destroyed first
        except Exception as error:
            self._on_error(error)

    def _wait_and_take(self, wait_set: Any, events: list[EventHandler]) -> None:
        wait_set.clear_entities()
        wait_set.add_subscription(self._subscription.handle)
        wait_set.add_guard_condition(self._wake.handle)
        for event in events:
            event.add_to_wait_set(wait_set)
        wait_set.wait(timeout_sec_to_nsec(_POLL_S))
        if self._closed.is_set():
            return
        for event in events:
            if event.is_ready(wait_set) and (data := event.take_data()):
                self._call(event.callback, data)
        taken = self._subscription.handle.take_message(self._subscription.msg_type, self._subscription.raw)
        if taken is not None:
            self._call(self._subscription.callback, taken[0])

    def _call(self, callback: Callable[[Any], None], argument: Any) -> None:
        try:
            callback(argument)
        except Exception as error:  # one message must not end the thread
            self._on_error(error)
