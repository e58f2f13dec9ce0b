"""Publish the diagnostic statuses of a node, through ROS's diagnostic_updater where that is installed."""

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

try:
    from diagnostic_updater import Updater
except ImportError:  # it is not on PyPI
    Updater = None


PERIOD_S = 1.0
"""Time between two messages, seconds; diagnostic_updater has a parameter for it, `diagnostic_updater.period`."""


class DiagnosticsPublisher:
    """Publishes on /diagnostics periodically, in every state of the node."""

    def __init__(self, node: Node, statuses: Callable[[], list[DiagnosticStatus]]) -> None:
        """Start to publish.

        Args:
            statuses: returns the statuses of one message, which have the same names each time. A name begins with that
                of the node and ": ".
        """
        self._statuses = statuses
        period_s = PERIOD_S
        if Updater is None:
            publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
            self._send: Callable[[list[DiagnosticStatus]], None] = lambda current: _send_array(node, publisher, current)
        else:
            updater = _UpdaterOfStatuses(node, statuses())
            self._send, period_s = updater.send, updater.period_s
        # A group of its own, so that diagnostics wait for no other callback; steady time, so that they do not stop
        # with a simulation.
        group, clock = MutuallyExclusiveCallbackGroup(), Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(period_s, self._publish, callback_group=group, clock=clock)

    def _publish(self) -> None:
        self._send(self._statuses())


def _send_array(node: Node, publisher: Any, statuses: list[DiagnosticStatus]) -> None:
    message = DiagnosticArray(status=statuses)
    message.header.stamp = node.get_clock().now().to_msg()
    publisher.publish(message)


class _UpdaterOfStatuses:
    """diagnostic_updater's publisher and parameters with statuses that are built elsewhere."""

    def __init__(self, node: Node, statuses: list[DiagnosticStatus]) -> None:
        self._updater = Updater(node, PERIOD_S)
        # Its timer follows the node's clock, which stands still where a simulation does.
        node.destroy_timer(self._updater.timer)
        self.period_s: float = self._updater.period
        """Value of the parameter `diagnostic_updater.period`."""
        self._updater.setHardwareID("none")  # each status has one of its own
        name, _, _ = statuses[0].name.partition(": ")
        full_name = "diagnostic_updater.use_fqn"
        if not (node.has_parameter(full_name) and node.get_parameter(full_name).value):
            # With the namespace, for several robots; that of Humble leaves it out in any case.
            self._updater.node_name = name
        self._current: dict[str, DiagnosticStatus] = {}
        for status in statuses:
            task = status.name.removeprefix(f"{name}: ")
            self._current[task] = status
            self._updater.add(task, self._fill)
        self._prefix = f"{name}: "

    def send(self, statuses: list[DiagnosticStatus]) -> None:
        self._current = {status.name.removeprefix(self._prefix): status for status in statuses}
        self._updater.force_update()

    def _fill(self, wrapper: Any) -> Any:
        status = self._current[wrapper.name]
        wrapper.summary(status.level, status.message)
        wrapper.hardware_id, wrapper.values = status.hardware_id, status.values
        return wrapper
