"""Heartbeat of an active node for a lifecycle manager that monitors its nodes, as nav2's does.

After the manager has activated a node, it listens on the topic `bond` for messages with the name of the node, and shuts
all of its nodes down if none arrives within `bond_timeout`. The node does not monitor the manager, so that it needs the
messages of the package bond, but not bondpy.
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
"""Time between two heartbeats, the same as in the nodes of nav2, seconds."""
_TIMEOUT_S = 4.0  # the default of bond; the manager uses its own


class Heartbeat:
    """Publishes that the node is active, from its construction to :meth:`stop`."""

    def __init__(self, node: Node) -> None:
        """Start to publish on a separate thread, which takes less time than a timer of the executor."""
        self._node = node
        self._instance = str(uuid.uuid4())
        self._publisher = node.create_publisher(Status, "bond", QoSProfile(depth=5))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bond", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Break the bond: publish that the node is no longer active."""
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
