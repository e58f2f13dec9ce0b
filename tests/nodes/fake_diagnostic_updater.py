"""A stand-in for ROS's diagnostic_updater, which is not on PyPI.

Written from the branches ros2-jazzy and stale/humble of ros/diagnostics. What it cannot show is that the real package
agrees with its source.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node


class DiagnosticStatusWrapper(DiagnosticStatus):
    """A status that a task fills."""

    def summary(self, *given: Any) -> None:
        """Set level and message, from another status or from both."""
        self.level, self.message = (given[0].level, given[0].message) if len(given) == 1 else given


class HumbleUpdater:
    """Runs tasks and publishes their statuses; names have the node's name, without its namespace."""

    def __init__(self, node: Node, period: float = 1.0) -> None:
        self.tasks: list[tuple[str, Callable[[Any], Any]]] = []
        self.lock = threading.Lock()
        self.node = node
        self.publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 1)
        self._period = node.declare_parameter("diagnostic_updater.period", period).value
        self.timer = node.create_timer(self._period, self.update)
        self.hwid = ""
        self.warned_of_no_hwid = False

    @property
    def period(self) -> float:
        """Seconds between two messages."""
        return float(self._period)

    def setHardwareID(self, hwid: str) -> None:  # noqa: N802 # its name
        """Set the hardware id of the statuses that get no other one."""
        self.hwid = hwid

    def add(self, name: str, task: Callable[[Any], Any]) -> None:
        """Add a task, and publish that the node starts."""
        with self.lock:
            self.tasks.append((name, task))
            starting = DiagnosticStatusWrapper(name=name)
            starting.summary(DiagnosticStatus.OK, "Node starting up")
            self.publish([starting])

    def update(self) -> None:
        """Run the tasks and publish their statuses."""
        warn = not self.hwid
        statuses = []
        with self.lock:
            for name, task in self.tasks:
                status = DiagnosticStatusWrapper(
                    level=DiagnosticStatus.ERROR, name=name, message="No message was set", hardware_id=self.hwid
                )
                statuses.append(task(status))
                warn = warn and statuses[-1].level == DiagnosticStatus.OK
        self.warned_of_no_hwid = self.warned_of_no_hwid or warn
        self.publish(statuses)

    def force_update(self) -> None:
        """Publish now."""
        self.update()

    def publish(self, statuses: list[Any]) -> None:
        """Publish statuses in one message."""
        message = DiagnosticArray()
        message.header.stamp = self.node.get_clock().now().to_msg()
        for each in statuses:
            message.status.append(
                DiagnosticStatus(
                    name=f"{self._name()}: {each.name}",
                    level=each.level,
                    message=each.message,
                    hardware_id=each.hardware_id,
                    values=each.values,
                )
            )
        self.publisher.publish(message)

    def _name(self) -> str:
        return str(self.node.get_name())


class JazzyUpdater(HumbleUpdater):
    """Has a parameter for the namespace in names."""

    def __init__(self, node: Node, period: float = 1.0) -> None:
        super().__init__(node, period)
        full = node.declare_parameter("diagnostic_updater.use_fqn", False).value
        self.node_name = "/".join([node.get_namespace(), node.get_name()]) if full else node.get_name()

    def _name(self) -> str:
        return str(self.node_name)
