#!/usr/bin/env python3
"""End with status 0 if the caption node of this container reports no error on /diagnostics, else with 1 and the reason.

Docker keeps what this prints: `docker inspect --format '{{json .State.Health}}' CONTAINER`.
"""

from __future__ import annotations

import os
import sys
import time

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

TIMEOUT_S = 10.0


def problem(context: Context, node_name: str, timeout_s: float) -> str:
    """Return what the node reports as an error, or that it reports nothing in time; empty where it is well.

    Args:
        context: an initialised context.
        node_name: full name of the node.
        timeout_s: longest wait for its diagnostics, discovery included.
    """
    statuses: list[DiagnosticStatus] = []
    prefix = f"{node_name.strip('/')}: captions"

    def on_diagnostics(message: DiagnosticArray) -> None:
        statuses.extend(status for status in message.status if status.name.lstrip("/").startswith(prefix))

    node = Node(
        f"health_of_captions_{os.getpid()}", context=context, enable_rosout=False, start_parameter_services=False
    )
    node.create_subscription(DiagnosticArray, "/diagnostics", on_diagnostics, 10)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    end_s = time.monotonic() + timeout_s
    while not statuses and time.monotonic() < end_s:
        executor.spin_once(timeout_sec=0.2)
    executor.shutdown()
    node.destroy_node()
    errors = [status.message for status in statuses if status.level >= DiagnosticStatus.ERROR]
    return "" if statuses and not errors else "; ".join(errors) or f"no diagnostics of {node_name} for {timeout_s:g} s"


def main() -> int:
    """Check the node that CAPTION_NODE names, /caption_node by default."""
    context = Context()
    rclpy.init(context=context)
    found = problem(context, os.environ.get("CAPTION_NODE", "/caption_node"), TIMEOUT_S)
    context.try_shutdown()
    print(found or "no error")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
