"""Report the state of a node to systemd, if it runs the process as a service of Type=notify."""

import os
from collections.abc import Callable

from rclpy.node import Node

from smart_caption_ros.nodes.timers import create_steady_timer
from smart_caption_ros.text import shortened

try:
    import sdnotify
except ImportError:  # apt's python3-sdnotify is not installed everywhere
    sdnotify = None

_PERIOD_S = 1.0
_MESSAGES_PER_WATCHDOG_TIME = 3  # so that one message may be late


class ServiceReport:
    """Reports to systemd that a node is ready, that it is alive, and that it stops.

    A callback of the node serves the watchdog, so that its messages stop when the executor hangs.
    """

    def __init__(
        self,
        node: Node,
        *,
        state: Callable[[], str],
        is_ready: Callable[[], bool],
        problem: Callable[[], str],
    ) -> None:
        """Start to report if systemd runs this process.

        Args:
            state: returns the state of the node, for the status.
            is_ready: returns whether the node has started; not called again after that.
            problem: returns why the node has to be restarted; empty if it does not.
        """
        self._node = node
        self._state, self._is_ready, self._problem = state, is_ready, problem
        self._ready = False
        self._status = ""
        self._notifier = None
        if not os.environ.get("NOTIFY_SOCKET"):
            return
        if sdnotify is None:
            node.get_logger().error("the state cannot be reported to systemd: pip install sdnotify, or set Type=exec")
            return
        self._notifier = sdnotify.SystemdNotifier()
        self._watchdog_s = watchdog_s()
        period_s = min(_PERIOD_S, self._watchdog_s / _MESSAGES_PER_WATCHDOG_TIME) if self._watchdog_s else _PERIOD_S
        create_steady_timer(node, period_s, self._report)

    def stop(self) -> None:
        if self._notifier is not None:
            self._notifier.notify("STOPPING=1")

    def _report(self) -> None:
        problem = self._problem()
        assignments = []
        if not self._ready and self._is_ready():
            self._ready = True
            assignments.append("READY=1")
        if self._watchdog_s and not problem:
            assignments.append("WATCHDOG=1")
        status = shortened(problem or self._state())
        if status != self._status:
            self._status = status
            # sdnotify encodes as Latin-1, and hides errors of encoding and sending.
            assignments.append(f"STATUS={status}".encode("ascii", "replace").decode())
            if problem:
                self._node.get_logger().error(f"{problem}: systemd's watchdog is no longer served")
        if assignments and self._notifier is not None:
            self._notifier.notify("\n".join(assignments))


def watchdog_s() -> float | None:
    """Return the time without a message after which systemd ends this process, seconds; None if it has no watchdog."""
    watched = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    time_us = os.environ.get("WATCHDOG_USEC", "")
    return int(time_us) / 1e6 if watched and time_us.isdecimal() and int(time_us) else None
