"""Replacements for parts of rclpy that ROS 2 Humble lacks or names differently from Jazzy and later."""

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
    """Make a subscription callback that takes a message and the middleware's information on it, which Humble lacks."""
    if not hasattr(Subscription, "CallbackType"):  # Humble
        return lambda message: callback(message, {})
    return callback


def add_parameter_callbacks(node: Node, check: Callable[[list[Any]], Any], apply: Callable[[list[Any]], None]) -> None:
    """Call one function before parameters of a node are set, and another one after they were set.

    Humble has no callback after parameters were set; there ``apply`` is called as soon as ``check`` has accepted them.
    rclpy has checked their types and ranges before. Other callbacks of the node are called later and could refuse them
    too late; the only one there is belongs to `use_sim_time`.

    Args:
        check: takes the parameters, and returns a SetParametersResult that accepts or refuses them.
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
