"""Timers of the nodes."""

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer


def create_steady_timer(
    node: Node, period_s: float, callback: Callable[[], None], group: CallbackGroup | None = None
) -> Timer:
    """Create a timer that runs on while a simulation is paused, and does not wait for other callbacks.

    Args:
        group: callback group; None makes a group for this timer alone, so that its callback is not called concurrently.
    """
    group = group or MutuallyExclusiveCallbackGroup()
    return node.create_timer(period_s, callback, callback_group=group, clock=Clock(clock_type=ClockType.STEADY_TIME))
