"""Heartbeat of an active node for a lifecycle manager that watches it, as that of nav2 does.

The manager forms a bond after it has activated a node: it listens on the topic `bond` for messages with the name of the
node, and takes all of its nodes down when none came for `bond_timeout`. bondpy is not needed for this half of a bond,
since the node does not watch the manager; the messages of the package bond are.
"""

import threading
import uuid

from rclpy.node import Node
from rclpy.qos import QoSProfile

try:
    from bond.msg import Status
except ImportError:  # not part of the ROS 2 core
    Status = None

PERIOD_S = 0.1
"""Time between two heartbeats, as of nav2's nodes, seconds."""
_TIMEOUT_S = 4.0  # bond's default, which the manager replaces by its own


class Heartbeat:
    """Publishes that the node is active, from the creation of this object to :meth:`stop`."""

    def __init__(self, node: Node) -> None:
        """Start to publish on a thread of its own, which costs less than a timer of the executor."""
        self._node = node
        self._instance = str(uuid.uuid4())
        self._publisher = node.create_publisher(Status, "bond", QoSProfile(depth=5))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bond", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Break the bond: publish that the node is not active any more."""
        self._ended.set()
        self._thread.join()
        self._publish(active=False)
        self._node.destroy_publisher(self._publisher)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._publish(active=True)
            self._ended.wait(PERIOD_S)

    def _publish(self, *, active: bool) -> None:
        message = Status(id=self._node.get_name(), instance_id=self._instance, active=active)
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.heartbeat_period, message.heartbeat_timeout = PERIOD_S, _TIMEOUT_S
        self._publisher.publish(message)
