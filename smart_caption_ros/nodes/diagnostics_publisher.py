"""Publish the diagnostic statuses of a node, through ROS's diagnostic_updater where that is installed."""

from collections.abc import Callable, Iterable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from smart_caption_ros.nodes.timers import create_steady_timer

try:
    from diagnostic_updater import Updater
except ImportError:  # it is not on PyPI
    Updater = None


PERIOD_S = 1.0
"""Time between two messages, seconds; diagnostic_updater has a parameter for it, `diagnostic_updater.period`."""


class DiagnosticsPublisher:
    """Publishes on /diagnostics periodically, in every state of the node."""

    def __init__(self, node: Node, statuses: Callable[[], list[DiagnosticStatus]]) -> None:
        """``statuses``: returns the statuses of one message. A name begins with that of the node and ": "."""
        self._node, self._statuses = node, statuses
        period_s = PERIOD_S
        if Updater is None:
            self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
            publish = self._publish
        else:
            self._updater = Updater(node, PERIOD_S)
            # Its timer follows the node's clock, which stands still where a simulation does.
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
            # With the namespace, for several robots; that of Humble leaves it out in any case.
            self._updater.node_name = name
        self._updater.publish(statuses)


def diagnostic_status(
    name: str, conditions: Iterable[tuple[bytes, str]], values: Mapping[str, object], hardware_id: str = ""
) -> DiagnosticStatus:
    """Build a status with the most severe condition, the first one of several that are equally severe.

    Args:
        conditions: level and sentence of each; one at least.
    """
    level, message = max(conditions, key=lambda condition: condition[0])
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware_id,
        values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
    )
