"""What rclpy of ROS 2 Humble lacks or names otherwise than Jazzy and later versions."""

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

__all__ = ["SubscriptionEventCallbacks", "add_parameter_callbacks", "with_message_info"]


def with_message_info(callback: Callable[[Any, Mapping[str, Any]], None]) -> Callable[..., None]:
    """Make a callback of a subscription that takes a message and what the middleware says of it; in Humble, nothing."""
    if not hasattr(Subscription, "CallbackType"):  # Humble
        return lambda message: callback(message, {})
    return callback


def add_parameter_callbacks(node: Node, check: Callable[[list[Any]], Any], apply: Callable[[list[Any]], None]) -> None:
    """Call a function before parameters of a node are set, and another one after they were set.

    Humble has no callback after parameters were set; there ``apply`` is called as soon as ``check`` has accepted them.
    rclpy has checked their types and ranges before. Another callback of the node that refuses them afterwards, which is
    that of `use_sim_time` alone, comes too late.

    Args:
        check: takes the parameters; returns a SetParametersResult that accepts or refuses them.
    """
    if hasattr(node, "add_post_set_parameters_callback"):
        node.add_on_set_parameters_callback(check)
        node.add_post_set_parameters_callback(apply)
        return

    def check_and_apply(parameters: list[Any]) -> Any:
        result = check(parameters)
        if result.successful:
            apply(parameters)
        return result

    node.add_on_set_parameters_callback(check_and_apply)
