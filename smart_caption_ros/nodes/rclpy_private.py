"""All uses of private members of rclpy, each with its reason; `tests/nodes/test_rclpy_private.py` tests them."""

import threading
from collections.abc import Mapping

from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter


def parameter_overrides(node: Node) -> Mapping[str, Parameter]:
    """Return the parameter values from files and the command line, by name.

    rclpy gives no public access to them before the parameters are declared, and none at all to those of misspelt names,
    which it ignores silently. The exceptions of `declare_parameter` name neither the range nor the remedy.
    """
    overrides: Mapping[str, Parameter] = node._parameter_overrides
    return overrides


def wait_for_callbacks(executor: MultiThreadedExecutor, timeout_s: float) -> bool:
    """Wait for the callbacks in progress of an executor that was shut down; return whether they have ended.

    `shutdown()` of rclpy does not wait for them, although its documentation says so. A callback that publishes after
    the context was shut down would print an exception.
    """
    waiting = threading.Thread(target=executor._executor.shutdown, daemon=True)
    waiting.start()
    waiting.join(timeout_s)
    return not waiting.is_alive()
