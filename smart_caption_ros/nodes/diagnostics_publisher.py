"""Publish the diagnostic statuses of a node, with ROS's diagnostic_updater where it is installed."""

from collections.abc import Callable, Iterable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from smart_caption_ros.nodes.timers import create_steady_timer

try:
    from diagnostic_updater import Updater
except ImportError:  # it is not on PyPI
    Updater = None


PERIOD_S = 1.0
"""Default time between two messages, seconds; diagnostic_updater declares a parameter `diagnostic_updater.period`."""


class DiagnosticsPublisher:
    """Publishes on /diagnostics periodically, in every state of the node."""

    def __init__(self, node: Node, statuses: Callable[[], list[DiagnosticStatus]]) -> None:
        """``statuses``: returns the statuses of one message; each name begins with the name of the node and ": "."""
        self._node, self._statuses = node, statuses
        period_s = PERIOD_S
        if Updater is None:
            self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
            publish = self._publish
        else:
            self._updater = Updater(node, PERIOD_S)
            # Its timer follows the clock of the node, which stops while a simulation is paused.
            node.destroy_timer(self._updater.timer)
            period_s, publish = self._updater.period, self._publish_by_updater
        create_steady_timer(node, period_s, publish)

    def _publish(self) -> None:
        message = DiagnosticArray(status=self._statuses())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _publish_by_updater(self) -> None:
        statuses = self._statuses()
        for status in statuses:
            name, _, status.name = status.name.partition(": ")
        full_name = "diagnostic_updater.use_fqn"
        if not (self._node.has_parameter(full_name) and self._node.get_parameter(full_name).value):
            # Includes the namespace, for several robots; diagnostic_updater of Humble always omits it.
            self._updater.node_name = name
        self._updater.publish(statuses)


def diagnostic_status(
    name: str, conditions: Iterable[tuple[bytes, str]], values: Mapping[str, object], hardware_id: str = ""
) -> DiagnosticStatus:
    """Build a status from the most severe condition, or the first of several that are equally severe.

    Args:
        conditions: level and sentence of each condition; at least one.
    """
    level, message = max(conditions, key=lambda condition: condition[0])
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware_id,
        values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
    )
