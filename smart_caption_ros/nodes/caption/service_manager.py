"""Notify systemd of the state of a node that it runs as a service of Type=notify; the protocol is sd_notify(3).

PyPI's package sdnotify has the same few lines, and has had no release since 2017.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from smart_caption_ros.text import shortened

_PERIOD_S = 1.0
_MESSAGES_PER_WATCHDOG_TIME = 3  # one may be late without an effect


class ServiceManager:
    """The socket on which systemd listens to this process."""

    def __init__(self, address: str, watchdog_s: float | None) -> None:
        """
        Args:
            address: path of the socket; of an abstract one, its name after `@`.
            watchdog_s: time without a watchdog message after which systemd ends the process, seconds; None: it waits
                for ever.
        """
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s = watchdog_s

    @classmethod
    def of_process(cls, environment: Mapping[str, str] = os.environ) -> ServiceManager | None:
        """Return the one that the environment names; None where there is none, or not a Unix socket."""
        address = environment.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return None
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        time_us = environment.get("WATCHDOG_USEC", "")
        return cls(address, int(time_us) / 1e6 if watched and time_us.isdecimal() and int(time_us) else None)

    def send(self, *assignments: str) -> None:
        """Send assignments such as `READY=1`.

        Raises:
            OSError: nobody listens.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as datagrams:
            datagrams.settimeout(_PERIOD_S)
            datagrams.sendto("\n".join(assignments).encode(), self._address)


class ServiceReport:
    """Reports that a node is ready, that it goes on, and that it stops.

    The messages of the watchdog come from a callback of the node, so that they end when the executor hangs.
    """

    def __init__(
        self,
        node: Node,
        *,
        state: Callable[[], str],
        is_ready: Callable[[], bool],
        problem: Callable[[], str],
    ) -> None:
        """Start to report, if systemd runs this process.

        Args:
            node: the node.
            state: what the node does, in a few words.
            is_ready: whether the node has started; not called again after that.
            problem: why the node has to be restarted; empty where it goes on.
        """
        self._node = node
        self._state, self._is_ready, self._problem = state, is_ready, problem
        self._manager = ServiceManager.of_process()
        self._ready = False
        self._status = ""
        if self._manager is not None:
            watchdog_s = self._manager.watchdog_s
            # Steady time, so that a simulation that stands still does not stop the watchdog.
            node.create_timer(
                min(_PERIOD_S, watchdog_s / _MESSAGES_PER_WATCHDOG_TIME) if watchdog_s else _PERIOD_S,
                self._report,
                callback_group=MutuallyExclusiveCallbackGroup(),
                clock=Clock(clock_type=ClockType.STEADY_TIME),
            )

    def stop(self) -> None:
        """Report that the node stops."""
        self._send("STOPPING=1")

    def _report(self) -> None:
        problem = self._problem()
        assignments = []
        if not self._ready and self._is_ready():
            self._ready = True
            assignments.append("READY=1")
        if self._manager is not None and self._manager.watchdog_s and not problem:
            assignments.append("WATCHDOG=1")
        status = shortened(problem or self._state())
        if status != self._status:
            self._status = status
            assignments.append(f"STATUS={status}")
            if problem:
                self._node.get_logger().error(f"{problem}: the watchdog of systemd is not served")
        if assignments:
            self._send(*assignments)

    def _send(self, *assignments: str) -> None:
        if self._manager is None:
            return
        try:
            self._manager.send(*assignments)
        except OSError as error:
            self._node.get_logger().warning(
                f"systemd cannot be told {assignments[0]}: {error.strerror or error}", throttle_duration_sec=60.0
            )
